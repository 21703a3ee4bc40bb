"""Processes that measure when asked to, so that several can take turns."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class WorkerProcess:
    """Asks a process that runs `answer_questions`; ends it as a context.

    Args:
        *arguments: the script and its arguments.
        **environment: more variables of its environment.
    """

    def __init__(self, *arguments, **environment):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY),
                "TF_CPP_MIN_LOG_LEVEL": "3",
                **environment,
            },
        )

    def ask(self, *question):
        """Sends a question without waiting for its answer."""
        with contextlib.suppress(BrokenPipeError):  # `answer` tells why
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()

    def answer(self):
        """Waits for the answer to the oldest question.

        Raises:
            RuntimeError: if the process has ended, with what it said.
        """
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(self._errors.read()[-4000:])
        return json.loads(line)

    def __call__(self, *question):
        """Asks and waits."""
        self.ask(*question)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills the process: it has nothing to save."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def answer_questions(functions):
    """Answers `[name, *arguments]` on standard input, one line each.

    Args:
        functions: dict of the functions; what they return must fit in JSON.
    """
    # Whatever a library prints must not be taken for an answer.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(functions[name](*arguments)), file=output, flush=True)
