"""Starts other processes; Python imports nothing from the current folder.

The current folder may come from strangers. `python -c` and `python -m` would
take modules from it before those that are installed, and a script from its own
folder, whose files may have the names of other packages.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = str(Path(__file__).parents[1])


def start_python(
    words: Sequence[Any],
    *,
    stderr: Any,
    stdout: Any = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
    start_new_session: bool = False,
) -> subprocess.Popen:
    """Starts the Python of this process, without an input.

    It can import this package. `words` are `-c CODE`, `-m MODULE` or a script,
    and its arguments. It has the environment of this process unless `env` is
    given. With `start_new_session`, Ctrl-C in the terminal does not reach it.
    """
    return subprocess.Popen(
        _safe_command(words),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=_with_package(env),
        start_new_session=start_new_session,
    )


def run_python(
    words: Sequence[Any], text: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs as `start_python` to the end, and returns what it printed.

    `text` is its standard input.
    """
    return _run(_safe_command(words), input=text, env=_with_package(env))


def run_other_python(
    python: str, words: Sequence[Any]
) -> subprocess.CompletedProcess[str]:
    """Runs a script in another environment, whose Python may be an older one.

    `words` are a script and its arguments. The script takes its own folder out
    of `sys.path`, since Pythons before 3.11 put it there.
    """
    # Instead of the option -P, which older ones refuse.
    env = {**os.environ, "PYTHONSAFEPATH": "1"}
    return _run([python, *map(str, words)], env=env)


def git_output(folder: str | Path, *words: str) -> str | None:
    """Returns what git prints in a folder, `None` if it fails."""
    command = ["git", "-C", str(folder), *words]
    try:
        return _run(command, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _run(command, *, input="", **options):
    return subprocess.run(
        command,
        input=input,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        **options,
    )


def _safe_command(words):
    return [sys.executable, "-P", *map(str, words)]


def _with_package(env):
    """An environment that finds this package, also in a source tree."""
    env = dict(os.environ if env is None else env)
    installed = (sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    # The folder of installed packages must not hide the standard library.
    if _ROOT not in installed:
        given = env.get("PYTHONPATH")
        env["PYTHONPATH"] = f"{given}{os.pathsep}{_ROOT}" if given else _ROOT
    return env
