"""`translate --context`: lines are translated with those before them."""

from types import SimpleNamespace

import pytest
import yaml
from digit_run import RECIPE, write_digits
from jsonargparse import Namespace

from keras_deepnmt import Translator, cli
from keras_deepnmt.commands.options.context import windows_in_context
from keras_deepnmt.data import in_context

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>1 2</seg></tuv></tu>
</body></tmx>
"""
LINES = ["1 2 3", "4 4 1 7", "9 8", "", "7 7 7", "5"]


def test_a_model_that_has_not_learned_it_is_refused(refused, digits, tmp_path):
    words = [digits / "run", "--input", tmp_path / "source"]
    (tmp_path / "source").write_text("1 2 3\n")
    error = refused("translate", *words, "--context", "2")
    assert "--context needs a model that was trained with" in error
    error = refused("translate", *words, "--context", "1", "--alignments", "a")
    assert "--context cannot be used with --alignments" in error
    words += ["--context", "1", "--replace-unknown"]
    error = refused("translate", *words)
    assert "--context cannot be used with --replace-unknown" in error
    table = tmp_path / "texts.tmx"
    table.write_text(TMX)
    words = ["--input", table, "--context", "1", "--source-language", "en"]
    words += ["--target-language", "de", "--output", tmp_path / "out.tmx"]
    error = refused("translate", digits / "run", *words)
    assert "--context needs plain text, where an empty line ends" in error
    for name, text in (("a.tsv", "de\n1\n"), ("a.jsonl", '{"de": "1"}\n')):
        (tmp_path / name).write_text(text)
        words = ["--input", tmp_path / name, "--source-column", "de"]
        error = refused("translate", digits / "run", *words, "--context", "1")
        assert f"{name}, which is {name[2:]}. Leave it out" in error


def test_a_line_keeps_its_own_tag_and_gets_no_other():
    translator = SimpleNamespace(
        context=1,
        source_tokenizer=SimpleNamespace(
            user_defined_symbols=["<sep>"], ids_of_pieces=lambda pieces: [4]
        ),
        training_tags=("<2de>", "<2fr>"),
    )
    options = Namespace(context=1, output=None)
    windows = iter([["<2de> a", "<2fr> b"], ["c", "<2de>", "<2de> d"]])
    found = windows_in_context(options, translator, windows, False)
    assert list(found) == [
        ["<2de> a", "<2fr> a <sep> b"],
        ["b <sep> c", "", "<2de> d"],
    ]


@pytest.mark.thorough
def test_each_line_has_the_lines_before_it(deepnmt, tmp_path):
    for seed, split in enumerate(("train", "valid", "test")):
        write_digits(tmp_path, split, 100, seed)
    (tmp_path / "base.yaml").write_text(RECIPE)
    data = {
        split: dict(
            zip(
                ("source", "target"),
                [str(tmp_path / f"{split}.{s}") for s in ("source", "target")],
                strict=True,
            )
        )
        for split in ("train", "valid", "test")
    }
    recipe = {
        "extends": "base.yaml",
        "data": {
            **data,
            "train": [data["train"]],
            "context": 2,
            "vocabulary_size": 26,
        },
        "training": {
            **{"steps": 2, "validate_every": 2, "jit_compile": False},
            "checkpoint_every": 2,
        },
    }
    (tmp_path / "context.yaml").write_text(yaml.safe_dump(recipe))
    run = tmp_path / "run"
    words = ["train", str(tmp_path / "context.yaml"), "--run-dir", str(run)]
    assert cli.main(words) == 0
    source = tmp_path / "source"
    source.write_text("".join(f"{line}\n" for line in LINES))
    words = [run, "--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", *words, "--context", "2")
    assert done.code == 0, done.err
    translator = Translator.load(run, compiled=False)
    found = done.out.split("\n")[:-1]
    assert found == translator.translate(in_context(LINES, 2))
    assert [not line for line in found] == [not line for line in LINES]
    assert found != translator.translate(LINES)
    done = deepnmt("translate", *words, "--context", "3")
    assert done.code == 2 and "--context must be at most 2, as" in done.err
    done = deepnmt("translate", *words)
    assert done.code == 0 and "trained with `data.context`: 2" in done.err
    assert (
        "data.context" not in deepnmt("translate", *words, "--context", "0").err
    )
