"""The first command of the README: all steps on the embedded corpus."""

import os
import re

import pytest
from digit_run import deepnmt_process

PROMISED_BLEU = 85
# `.ci/run` names the program of the installed wheel.
PROGRAM = os.environ.get("DEEPNMT_PROGRAM")


@pytest.fixture(autouse=True)
def programs_compiled_as_for_users(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")


def quickstart(folder, scale, output=None):
    words = ["quickstart", "--scale", scale]
    if output:
        words += ["--output", output]
    done = deepnmt_process(*words, folder=folder, program=PROGRAM)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^test bleu .*version:", done.stdout, re.M)
    for kind in ("source", "translation", "reference"):
        number = len(re.findall(rf"^  {kind} ", done.stdout, re.M))
        # Five of the test set, one through the SavedModel, one by the package's
        # trained model.
        assert number == (5 if kind == "reference" else 7)
    assert "TensorFlow and TensorFlow-Text alone" in done.stdout
    stages = re.findall(r"^\[ *\d+ s\] (.*)", done.stderr, re.M)
    assert len(stages) == 7
    output = output or f"quickstart-{scale}"
    assert f"deepnmt translate {output}/run" in done.stderr
    return done.stdout


@pytest.mark.thorough(each_commit=True)
def test_smoke(tmp_path):
    quickstart(tmp_path, "smoke")
    names = {path.name for path in (tmp_path / "quickstart-smoke").iterdir()}
    assert names >= {"corpus", "prepared", "run", "served"}


@pytest.mark.thorough(each_commit=True)
def test_output_names_the_folder_to_write(tmp_path):
    (tmp_path / "file").touch()
    words = ("quickstart", "--output", "file/out")
    done = deepnmt_process(*words, folder=tmp_path, program=PROGRAM)
    assert done.returncode == 2
    assert "file/out" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_full_scale_keeps_its_promise(tmp_path):
    out = quickstart(tmp_path, "full", "out")
    bleu = float(re.search(r"^test bleu (\S+)", out, re.M)[1])
    assert bleu >= PROMISED_BLEU
    assert quickstart(tmp_path, "full", "out") == out
