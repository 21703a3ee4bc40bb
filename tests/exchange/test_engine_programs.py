"""What must be true of each `translate.py` that is written beside a model."""

import importlib.util
import io
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from keras_deepnmt.exchange.engine_folders import ENGINES


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_it_translates_every_line_once_and_in_order(
    engine, monkeypatch, capsys
):
    # The engines need not be installed: how lines are read is the program's.
    for name in ("ctranslate2", "onnxruntime", "torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    file = ENGINES[engine].program
    spec = importlib.util.spec_from_file_location(file.stem, file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    # Pieces for bytes may be line ends.
    upper = SimpleNamespace(
        translate=lambda texts: [f"{t.upper()}\n\r" for t in texts]
    )
    monkeypatch.setattr(program, "Model", lambda folder: upper)
    # Lines are read in blocks: their numbers around the end of one, and more.
    for number in (0, 1, 1023, 1024, 1025, 2049, 3000):
        lines = [f"line {n}" for n in range(number)]
        text = io.StringIO("".join(f"{line}\n" for line in lines))
        monkeypatch.setattr(sys, "stdin", text)
        program.main()
        found = capsys.readouterr().out.split("\n")[:-1]
        assert found == [f"{line.upper()}  " for line in lines]
