"""A command reuses the programs that an earlier one compiled."""

import shutil
import subprocess
import sys

import pytest
from digit_run import deepnmt_process, environment

from keras_deepnmt.xla.cache import USER_VARIABLE, cache_dir

pytestmark = pytest.mark.thorough


# Slow: tests/runs/test_compilation_cache.py has a cache that processes share.
@pytest.mark.slow
def test_the_next_command_compiles_less(digits, tmp_path):
    (tmp_path / "in").write_text("1 2 3\n")
    folder = cache_dir(tmp_path / "cache", "tensorflow")

    variables = environment(**{USER_VARIABLE: str(tmp_path / "cache")})
    # At a lower level TensorFlow tells of each program that it reads.
    variables.pop("TF_CPP_MIN_LOG_LEVEL", None)

    def translate():
        done = subprocess.run(
            [
                *(sys.executable, "-m", "keras_deepnmt", "translate"),
                *(digits / "run", "--compile", "--input", tmp_path / "in"),
            ],
            capture_output=True,
            text=True,
            env=variables,
        )
        assert (done.stdout, done.stderr) == ("3 2 1\n", "")
        return {file: file.stat().st_mtime_ns for file in folder.iterdir()}

    first = translate()
    assert len(first) == 1
    assert translate() == first
    shutil.rmtree(tmp_path / "cache")
    # A folder that was deleted meanwhile is made again.
    assert len(translate()) == 1


def test_without_a_home_nothing_is_kept(digits, tmp_path, monkeypatch):
    monkeypatch.delenv(USER_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc/none")
    done = deepnmt_process(
        *("translate", digits / "run", "--compile", "--num-beams", "1"),
        folder=tmp_path,
        stdin="1 2 3\n",
    )
    assert (done.stdout, done.stderr) == ("3 2 1\n", "")
