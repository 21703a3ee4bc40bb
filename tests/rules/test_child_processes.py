"""Only `processes.py` starts processes, and safely.

Python that is started in a folder of someone else, or beside a file of ours,
must not import modules from there.
"""

import ast
import os
import sys
from pathlib import Path

import pytest
from package_tree import PACKAGE, refuse, relative, source_files, syntax_tree

from keras_deepnmt import processes

STARTS_PROCESSES = PACKAGE / "processes.py"
CALLS = {"subprocess.run", "subprocess.Popen"}
NO_CALLS = {
    "subprocess.CompletedProcess",
    "subprocess.DEVNULL",
    "subprocess.SubprocessError",
}
MODULES = {"subprocess", "multiprocessing", "pty", "pexpect"}
FUNCTIONS_OF_OS = ("exec", "spawn", "posix_spawn", "fork", "startfile")
NAMES = {
    "ProcessPoolExecutor",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "mp_prefetch",
    "popen",
}


def starts(tree):
    """Yields the line and name of everything that may start a process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if (
                first in MODULES
                or (first == "os" and rest.startswith(FUNCTIONS_OF_OS))
                or name.rpartition(".")[2] in NAMES
                or name == "os.system"
            ):
                yield node.lineno, name


def test_one_file_starts_processes():
    refuse(
        [
            f"{relative(path)}:{line}: {name}"
            for path in source_files()
            if path != STARTS_PROCESSES
            for line, name in starts(syntax_tree(path))
        ],
        "Start processes by the functions of processes.py.",
    )


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import Popen as start",
        "import multiprocessing.pool",
        "import os; os.execv('a', ['a'])",
        "from os import posix_spawn",
        "import os; os.system('a')",
        "from os import system, popen",
        "import concurrent.futures as f; f.ProcessPoolExecutor()",
    ],
)
def test_a_start_of_a_process_is_found(code):
    assert list(starts(ast.parse(code)))


def test_each_command_is_safe_python_another_one_or_git():
    calls = [
        node
        for node in ast.walk(syntax_tree(STARTS_PROCESSES))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"_run", *CALLS}
    ]
    used = {name for _, name in starts(syntax_tree(STARTS_PROCESSES))}
    assert used == {"subprocess", *CALLS, *NO_CALLS}
    assert {ast.unparse(call.args[0]) for call in calls} == {
        "_safe_command(words)",  # with -P
        "[python, *map(str, words)]",  # with PYTHONSAFEPATH
        "command",  # git, or one of those above
    }


@pytest.fixture
def strange_folder(tmp_path, monkeypatch):
    """The current folder, with modules that have the names of others."""
    monkeypatch.chdir(tmp_path)
    for name in ("colorsys", "keras_deepnmt"):
        Path(f"{name}.py").write_text(f"open('{name} ran', 'w')")
    Path("script.py").write_text("import colorsys")
    return tmp_path


@pytest.mark.parametrize(
    "words", [["-c", "import colorsys"], ["-m", "colorsys"], ["script.py"]]
)
def test_no_module_of_the_current_folder_runs(strange_folder, words):
    assert processes.run_python(words).returncode == 0
    assert processes.run_other_python(sys.executable, words).returncode == 0
    with open(os.devnull, "w") as null:
        assert processes.start_python(words, stderr=null).wait() == 0
    assert not list(strange_folder.glob("* ran"))


def test_the_package_is_found_as_in_this_process(strange_folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "more")
    code = "import keras_deepnmt, sys; print(keras_deepnmt.__file__, *sys.path)"
    file, *paths = processes.run_python(["-c", code]).stdout.split()
    assert Path(file) == PACKAGE / "__init__.py"
    assert str(strange_folder / "more") in paths
    assert str(strange_folder) not in paths
