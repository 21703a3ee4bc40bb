"""The tutorial takes a layer from its equation to BLEU and to an export.

The commands of the page are run as they stand, with few updates of a small
model on a small corpus. Afterwards the export runs where the file of the layer
and this package cannot be imported.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from digit_run import write_digits
from own_code_process import new_process
from package_tree import REPOSITORY
from test_readme import blocks, write_files
from uncompiled_models import eager_updates

from keras_deepnmt import cli
from keras_deepnmt.serving import exporting
from keras_deepnmt.serving.verification import translate_in_fresh_process
from keras_deepnmt.translator.loading import read_run

PAGE = REPOSITORY / "docs" / "write_a_layer.md"
SMALL = """\
training.steps=2 training.validate_every=2 training.jit_compile=false
training.batch_tokens=128 training.max_shapes=1 model.overrides.hidden_dim=8
model.overrides.intermediate_dim=8 model.overrides.num_heads=2
model.overrides.num_encoder_layers=1 model.overrides.num_decoder_layers=1
evaluation.tokenize=none
""".split()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(PAGE)
    words = ["prepare", "--output", "prepared", "--vocabulary-size", "25"]
    for seed, (split, pairs) in enumerate(
        {"train": 90, "valid": 3, "test": 5}.items()
    ):
        write_digits(tmp_path, split, pairs, seed)
        prefix = "" if split == "train" else f"{split}-"
        for side in ("source", "target"):
            words += [f"--{prefix}{side}", f"{split}.{side}"]
    assert cli.main([*words, "--quiet"]) == 0
    with new_process(tmp_path / "home"), eager_updates():
        yield tmp_path


@pytest.mark.thorough
def test_the_layer_goes_from_the_equation_to_bleu_and_an_export(
    folder, capsys, monkeypatch
):
    # A new process translates below.
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    for _, block in blocks(PAGE, "bash"):
        for command in re.findall(r"^(.*\| )?deepnmt (.*)$", block, re.M):
            words = shlex.split(command[1])
            if words[0] == "train":
                words += ["--prepared", "prepared", "--set", *SMALL]
            if command[0]:
                text = shlex.split(command[0])[1]
                Path("input").write_text(f"{text}\n")
                words += ["--input", "input"]
            if words[0] in ("evaluate", "translate"):
                words += ["--no-compile", "--max-extra-tokens", "3"]
            assert cli.main([*words, "--quiet"]) == 0, capsys.readouterr().err
    layer = read_run("runs/gated").load_model().source_embedding_layer
    assert type(layer).__name__ == "SqueezeExcitation"
    assert layer.reduction == 4
    printed = capsys.readouterr().out
    assert "runs/plain" in printed and "bleu" in printed
    shutil.move("served", "elsewhere")
    (folder / "my_layers.py").unlink()
    shutil.rmtree("runs")
    assert len(translate_in_fresh_process("elsewhere/gated/1", ["1 2"])) == 1
