"""Fixtures for all tests of the command line."""

import os
from types import SimpleNamespace

import pytest
from digit_run import digit_folder, write_digits

from keras_deepnmt.cli import main


@pytest.fixture
def deepnmt(capfd, monkeypatch):
    """Runs a command in this process: its exit code, stdout and stderr."""

    # A command may set it for its own process; later tests must not see that.
    # Set here, so that it is put back afterwards.
    monkeypatch.setenv("TF_XLA_FLAGS", os.environ.get("TF_XLA_FLAGS", ""))

    def run(*words, stdin=None):
        capfd.readouterr()
        with open(stdin or os.devnull, encoding="utf-8") as file:
            monkeypatch.setattr("sys.stdin", file)
            code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def refused(deepnmt):
    """Runs a command that must fail in one line, and gives that line."""

    def run(*words, stdin=None):
        done = deepnmt(*words, stdin=stdin)
        assert done.code == 2
        assert done.err.count("\n") == 1, done.err
        assert done.err.startswith(f"deepnmt {words[0]}: error: "), done.err
        return done.err

    return run


@pytest.fixture
def write_file(tmp_path):
    """Writes a text to a temporary file of a name, and returns its path."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """The current folder, with the files train.source and train.target."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path, "train", 400, seed=0)
    return tmp_path


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A folder with a corpus, `prepared` and a trained `run`."""
    return digit_folder(tmp_path_factory)
