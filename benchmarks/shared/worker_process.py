"""Processes that run measurements on request, so that several can alternate."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class WorkerProcess:
    """Starts a script that calls `answer_questions`, and sends it requests.

    `arguments` are the script and its arguments, `environment` more environment
    variables. `python` is the interpreter, by default the one that runs. Use it
    as a context manager: leaving it ends the process.
    """

    def __init__(self, *arguments, python=None, **environment):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [python or sys.executable, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=worker_environment(**environment),
        )

    def ask(self, *question):
        """Sends a request without waiting for its answer."""
        with contextlib.suppress(BrokenPipeError):  # `answer` raises the reason
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()

    def answer(self, timeout=None):
        """Waits for the answer to the oldest request.

        Raises a `RuntimeError` with the process's error output if it has ended,
        and a `TimeoutError` if `timeout` is given and no answer begins within
        so many seconds; only one request may then be waiting for its answer.
        """
        if timeout is not None:
            output = [self._process.stdout]
            if not select.select(output, [], [], max(timeout, 0))[0]:
                raise TimeoutError("No answer came in time.")
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(self._errors.read()[-4000:])
        return json.loads(line)

    def __call__(self, *question):
        """Sends a request and waits for the answer."""
        self.ask(*question)
        return self.answer()

    def kill(self):
        """Kills the process, which has nothing to save."""
        self._process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._process.communicate()
        self._errors.close()


def worker_environment(**variables):
    """Returns the environment variables of a worker process.

    It finds this repository, and TensorFlow logs nothing but errors.
    `variables` replace these or are added.
    """
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **variables,
    }


def answer_questions(functions):
    """Answers requests `[name, *arguments]` from standard input.

    Each request and each answer is one line of JSON. `functions` maps names to
    functions, whose results must be serializable as JSON.
    """
    # Answers use a copy of standard output; what libraries print goes to
    # standard error.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(functions[name](*arguments)), file=output, flush=True)
