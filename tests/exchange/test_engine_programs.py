"""What must be true of each `translate.py` that is written beside a model."""

import importlib.util
import io
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import tensorflow as tf

from keras_deepnmt.exchange import engine_folders
from keras_deepnmt.exchange.engine_folders import ENGINES


@pytest.fixture(params=sorted(ENGINES))
def run(request, monkeypatch):
    """Runs a program on bytes of standard input, and returns its output."""
    # The engines need not be installed: how lines are read is the program's.
    for name in ("ctranslate2", "onnxruntime", "torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    file = ENGINES[request.param].program
    spec = importlib.util.spec_from_file_location(file.stem, file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    # Pieces for bytes may be line ends.
    upper = SimpleNamespace(
        translate=lambda texts: [f"{t.upper()}\n\r" for t in texts]
    )
    monkeypatch.setattr(program, "Model", lambda folder: upper)

    def run(content):
        # Whatever the encoding of the system is.
        for name, stream in (("stdin", content), ("stdout", b"")):
            file = io.TextIOWrapper(io.BytesIO(stream), "ascii")
            monkeypatch.setattr(sys, name, file)
        program.main()
        return sys.stdout.buffer.getvalue().decode()

    return run


def test_it_translates_every_line_once_and_in_order(run):
    # Lines are read in blocks: their numbers around the end of one, and more.
    for number in (0, 1, 1023, 1024, 1025, 2049, 3000):
        lines = [f"line {n}" for n in range(number)]
        found = run("".join(f"{line}\n" for line in lines).encode())
        assert found.split("\n")[:-1] == [f"{line.upper()}  " for line in lines]


def test_lines_are_those_of_the_command(run):
    # A byte order mark, ends of Windows, one of an old Mac, and no end.
    found = run("\ufeffä\r\nb\rc\n\r\r\n\u2028\n\ufeffd".encode())
    assert found == "Ä  \nB C  \n   \n\u2028  \n\ufeffD  \n"
    message = r"^standard input, line 2: not UTF-8 \(byte 2 of the line is 0xff"
    with pytest.raises(SystemExit, match=message):
        run(b"a\nb\xff\n")


def test_expected_numbers_have_all_digits_on_a_gpu(monkeypatch, tmp_path):
    """They are compared with what an engine computes on a CPU."""
    is_rounded = tf.config.experimental.tensor_float_32_execution_enabled

    def expected(*given):
        found.append(is_rounded())
        raise KeyboardInterrupt

    found = [is_rounded()]
    monkeypatch.setattr(engine_folders, "_expected", expected)
    with pytest.raises(KeyboardInterrupt):
        engine_folders.write_engine_folder(None, None, tmp_path, None)
    assert [*found, is_rounded()] == [True, False, True]
