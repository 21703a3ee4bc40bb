"""What must be true of an export with fewer bits of a run: it says what they
cost and gain, on the test set of the run."""

import re

import pytest

from keras_deepnmt.cli import main

pytestmark = pytest.mark.thorough

pytest.importorskip("ctranslate2")


def test_an_export_in_int8_compares_the_test_set_of_its_run(
    finished_run, tmp_path, capsys
):
    words = ["export", str(finished_run), str(tmp_path / "int8")]
    assert main([*words, "--format", "ctranslate2", "--dtype", "int8"]) == 0
    found = re.search(
        r"BLEU of (\d+) sentences is ([\d.]+) with int8 and ([\d.]+) with "
        r"float32",
        " ".join(capsys.readouterr().err.split()),
    )
    number, *bleu = found.groups()
    assert int(number) == 7  # as many as the test set has
    assert all(0 <= float(value) <= 100 for value in bleu)
