"""Starts programs as forks of a process that has imported everything already.

A new interpreter spends four seconds on imports before it does anything. What
a test starts here is a process of its own all the same, with its own streams,
environment, folder, limits and signals, and its own TensorFlow or JAX, which
has not run anything before. There is one server for each backend of Keras and
each process that runs tests.

Not for a test of the imports themselves, of what they print, or of a variable
that is read while they happen: it starts an interpreter.
"""

import atexit
import contextlib
import functools
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryFile

# What a command or a test program may import.
IMPORTED = (
    "h5py",
    "keras_deepnmt.evaluation",
    "keras_deepnmt.runs",
    "keras_deepnmt.serving",
    "matplotlib.pyplot",
    "sacrebleu",
)
STREAMS = ("stdin", "stdout", "stderr")


class ForkedProcess:
    """Runs `python START...` in a fork; used like `subprocess.Popen`.

    Args:
        start: `-m MODULE`, `-c CODE` or a script, and its arguments.
        cwd: its current folder.
        env: all its environment. `KERAS_BACKEND` chooses the server.
        stdin, stdout, stderr: a file, `subprocess.PIPE`, `subprocess.DEVNULL`,
            or None for the stream of the tests.
        file_size_limit: it cannot write larger files; as a full disk.
    """

    def __init__(
        self,
        start,
        *,
        cwd=None,
        env=None,
        stdin=None,
        stdout=None,
        stderr=None,
        file_size_limit=None,
    ):
        env = dict(os.environ if env is None else env)
        self.returncode = None
        given, theirs = (stdin, stdout, stderr), []
        with contextlib.ExitStack() as until_started:
            for number, (name, stream) in enumerate(
                zip(STREAMS, given, strict=True)
            ):
                ours, end = self._open(number, stream, until_started)
                setattr(self, name, ours)
                theirs.append(end)
            self._status, end = socket.socketpair()
            until_started.enter_context(end)
            request = {
                "start": [str(word) for word in start],
                "cwd": str(cwd or os.getcwd()),
                "env": env,
                "file_size_limit": file_size_limit,
            }
            server, log = _server(env.get("KERAS_BACKEND", "tensorflow"))
            content = json.dumps(request).encode()
            size = len(content).to_bytes(4)
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(server, [size], [*theirs, end.fileno()])
                server.sendall(content)
        self.pid = int.from_bytes(self._status.recv(4))
        if not self.pid:
            log.seek(0)
            raise RuntimeError(f"The server of forks ended. {log.read()}")

    @staticmethod
    def _open(number, stream, until_started):
        """Our end of a stream, or None, and the number of theirs."""
        if stream is None:
            return None, number
        if stream == subprocess.DEVNULL:
            null = until_started.enter_context(open(os.devnull, "r+b"))
            return None, null.fileno()
        if stream != subprocess.PIPE:
            return None, stream.fileno()
        reader, writer = os.pipe()
        ours, theirs = (writer, reader) if number == 0 else (reader, writer)
        until_started.callback(os.close, theirs)
        mode = "w" if number == 0 else "r"
        return open(ours, mode, encoding="utf-8"), theirs

    def poll(self):
        """The exit code, or None while it runs."""
        if self.returncode is None:
            readable, _, _ = select.select([self._status], [], [], 0)
            if readable:
                self.wait()
        return self.returncode

    def wait(self, timeout=None):
        """Waits for its end, and returns the exit code; -9 after SIGKILL."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            status = self._status.recv(4)
            self._status.close()
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(status))
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self):
        """Closes stdin and reads the other pipes to their end."""
        if self.stdin and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        texts = []
        for stream in (self.stdout, self.stderr):
            with stream or contextlib.nullcontext():
                texts.append(stream.read() if stream else None)
        self.wait()
        return tuple(texts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()


def run_forked(start, *, input="", timeout=None, **options):
    """Runs `python START...` to its end; used like `subprocess.run`.

    Args:
        start: as that of `ForkedProcess`.
        input: the text of its standard input.
        timeout: seconds after which it is killed.
        options: `cwd`, `env` and `file_size_limit` of `ForkedProcess`.
    """
    with contextlib.ExitStack() as stack:
        # Files, since nobody reads two pipes at once.
        files = [
            stack.enter_context(TemporaryFile("w+", encoding="utf-8"))
            for _ in STREAMS
        ]
        files[0].write(input)
        files[0].seek(0)
        options |= dict(zip(STREAMS, files, strict=True))
        process = ForkedProcess(start, **options)
        try:
            process.wait(timeout)
        except TimeoutError:
            process.send_signal(signal.SIGKILL)
            raise
        texts = []
        for file in files[1:]:
            file.seek(0)
            texts.append(file.read())
    return subprocess.CompletedProcess(start, process.returncode, *texts)


@functools.cache
def _server(backend):
    """The socket of the server for a backend, which starts now, and its log."""
    ours, theirs = socket.socketpair()
    log = TemporaryFile("w+", encoding="utf-8")
    variables = {
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # A fork has only the thread that forks.
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, **variables},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    atexit.register(_end, process, ours)
    return ours, log


def _end(process, connection):
    connection.close()
    process.wait()


def _serve(connection):
    """Forks for each request, until the tests have closed the connection."""
    # Ctrl-C is for the forks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running = set()
    while True:
        size, files, _, _ = socket.recv_fds(connection, 4, 4)
        if not size:
            return
        running = {p for p in running if not os.waitpid(p, os.WNOHANG)[0]}
        content = b""
        while len(content) < int.from_bytes(size):
            content += connection.recv(2**16)
        watcher = os.fork()
        if watcher == 0:
            connection.close()
            _watch(json.loads(content), files)
        running.add(watcher)
        for file in files:
            os.close(file)


def _watch(request, files):
    """Forks the program; sends its id at once and its status at the end."""
    *streams, status_file = files
    pid = os.fork()
    if pid == 0:
        os.close(status_file)
        _become(request, streams)
    for file in streams:
        os.close(file)
    with (
        contextlib.suppress(BrokenPipeError),
        socket.socket(fileno=status_file) as status,
    ):
        status.sendall(pid.to_bytes(4))
        status.sendall(os.waitpid(pid, 0)[1].to_bytes(4))
    os._exit(0)


def _become(request, streams):
    """Becomes the requested program."""
    for number, file in enumerate(streams):
        os.dup2(file, number)
        if file > 2:
            os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    limit = request["file_size_limit"]
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors=errors, closefd=False)
        for number, (mode, errors) in enumerate(
            (("r", None), ("w", None), ("w", "backslashreplace"))
        )
    )
    sys.stderr.reconfigure(line_buffering=True)
    code = _run(*request["start"])
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(first, *words):
    """Runs as `python FIRST WORDS...`; returns the exit code."""
    try:
        if first == "-m":
            module, *arguments = words
            sys.argv, sys.path[0] = [module, *arguments], ""
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        elif first == "-c":
            code, *arguments = words
            sys.argv, sys.path[0] = ["-c", *arguments], ""
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv, sys.path[0] = [first, *words], str(Path(first).parent)
            runpy.run_path(first, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else bool(end.code)
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _import_everything():
    """Imports what programs need, and nothing that cannot be forked."""
    import gc
    import importlib
    import warnings

    # What is imported stays.
    gc.disable()
    from keras_deepnmt.commands import VERBS, module_name

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in IMPORTED:
            importlib.import_module(module)
        for verb in VERBS:
            importlib.import_module(module_name(verb))
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        raise RuntimeError(
            f"Importing has started {len(threads) - 1} threads. A fork would "
            "lack them."
        )
    gc.collect()
    # Collections of the forks would copy the memory of all objects.
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    _import_everything()
    with socket.socket(fileno=int(sys.argv[1])) as tests:
        _serve(tests)
