"""The first command of the README: the whole road on the embedded corpus."""

import re

import pytest
from digit_run import deepnmt_process

PROMISED_BLEU = 85


def quickstart(folder, scale):
    words = ["quickstart", "--scale", scale, "--output", "out"]
    done = deepnmt_process(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^test bleu .*version:", done.stdout, re.M)
    for kind in ("source", "translation", "reference"):
        number = len(re.findall(rf"^  {kind} ", done.stdout, re.M))
        # Five of the test set, and one through the SavedModel.
        assert number == (5 if kind == "reference" else 6)
    assert "TensorFlow and TensorFlow-Text alone" in done.stdout
    stages = re.findall(r"^\[ *\d+ s\] (.*)", done.stderr, re.M)
    assert len(stages) == 6
    assert "deepnmt translate out/run" in done.stderr
    return done.stdout


@pytest.mark.thorough
def test_smoke(tmp_path):
    quickstart(tmp_path, "smoke")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"corpus", "prepared", "run", "served"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_full_scale_keeps_its_promise(tmp_path):
    out = quickstart(tmp_path, "full")
    bleu = float(re.search(r"^test bleu (\S+)", out, re.M)[1])
    assert bleu >= PROMISED_BLEU
    assert quickstart(tmp_path, "full") == out
