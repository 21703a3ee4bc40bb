"""Every script of `benchmarks/` finds what it imports."""

import subprocess
import sys
from pathlib import Path

import pytest
from digit_run import environment

SCRIPTS = sorted(Path(__file__).parents[2].glob("benchmarks/*.py"))


@pytest.fixture(scope="module")
def imported():
    names = [script.stem for script in SCRIPTS]
    code = (
        "import importlib\n"
        f"for name in {names}:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except Exception as error:\n"
        "        print(name, 'fails', repr(error))\n"
        "    else:\n"
        "        print(name, 'imports')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=SCRIPTS[0].parent,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", [script.stem for script in SCRIPTS])
def test_a_script_finds_what_it_imports(imported, name):
    assert imported[name] == "imports"
