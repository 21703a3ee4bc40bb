"""Every script of `benchmarks/` finds what it imports, from any folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from digit_run import environment

REPOSITORY = Path(__file__).parents[2]
BENCHMARKS = REPOSITORY / "benchmarks"
MODULES = [
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for path in sorted(BENCHMARKS.rglob("*.py"))
]
FOLDERS = ("speed", "quality", "memory", "scaling")
SCRIPTS = [
    BENCHMARKS / "write_tables.py",
    *(path for name in FOLDERS for path in BENCHMARKS.glob(f"{name}/*.py")),
]


@pytest.fixture(scope="module")
def imported():
    code = (
        "import importlib\n"
        f"for name in {MODULES}:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except Exception as error:\n"
        "        print(name, 'fails', repr(error))\n"
        "    else:\n"
        "        print(name, 'imports')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", MODULES)
def test_a_script_finds_what_it_imports(imported, name):
    assert imported[name] == "imports"


def test_scripts_start_in_any_folder_without_a_search_path(tmp_path):
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    failed = {}
    for script in SCRIPTS:
        done = subprocess.run(
            [sys.executable, script, "--help"],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
        )
        if done.returncode or "usage:" not in done.stdout:
            failed[script.name] = done.stderr
    assert failed == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_both_readmes_name_every_script(folder):
    names = {path.name for path in (BENCHMARKS / folder).glob("*.py")}
    for page in (BENCHMARKS / "README.md", BENCHMARKS / folder / "README.md"):
        text = page.read_text(encoding="utf-8")
        # A table's cell may give the arguments after the name.
        missing = {name for name in names if f"`{name}" not in text}
        assert not missing, f"{page} does not name {missing}."
