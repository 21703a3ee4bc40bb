"""`translate --terms`: terms have their translations beside them."""

import pytest
import yaml
from digit_run import RECIPE, write_digits

from keras_deepnmt import Translator, cli
from keras_deepnmt.data import TermList

LINES = ["1 2 3", "4 4 1 7", "", "9 8"]


def test_a_model_that_has_not_learned_it_is_refused(
    refused, digits, write_file
):
    source, terms = write_file("source", "1 2\n"), write_file("terms", "1\t2\n")
    words = [digits / "run", "--input", source, "--terms", terms]
    error = refused("translate", *words)
    assert "--terms needs a source tokenizer with the user-defined" in error
    error = refused("translate", *words, "--alignments", "a")
    assert "--terms cannot be used with --alignments" in error
    error = refused("translate", *words, "--replace-unknown")
    assert "--terms cannot be used with --replace-unknown" in error


@pytest.mark.thorough
def test_each_line_is_translated_with_its_marks(deepnmt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, split in enumerate(("train", "valid", "test")):
        write_digits(tmp_path, split, 100, seed)
    sizes = [
        len(line.split())
        for line in (tmp_path / "train.source").read_text().splitlines()
    ]
    (tmp_path / "links").write_text(
        "".join(
            " ".join(f"{n}-{size - 1 - n}" for n in range(size)) + "\n"
            for size in sizes
        )
    )
    (tmp_path / "base.yaml").write_text(RECIPE)
    recipe = {
        "extends": "base.yaml",
        "data": {
            "train": [
                {
                    "source": "train.source",
                    "target": "train.target",
                    "alignments": "links",
                }
            ],
            "user_defined_symbols": ["<term>", "<is>", "</term>"],
            "vocabulary_size": 28,
        },
        "training": {
            **{"steps": 2, "validate_every": 2, "jit_compile": False},
            "checkpoint_every": 2,
            "stages": [{"modifiers": {"terms": 0.5}}],
        },
    }
    (tmp_path / "terms.yaml").write_text(yaml.safe_dump(recipe))
    run = tmp_path / "run"
    assert cli.main(["train", "terms.yaml", "--run-dir", str(run)]) == 0
    source, terms = tmp_path / "source", tmp_path / "terms.tsv"
    source.write_text("".join(f"{line}\n" for line in LINES))
    terms.write_text("1\t5\n4 4\t6\n")
    words = [run, "--input", source, "--no-compile", "-q", "--terms", terms]
    done = deepnmt("translate", *words)
    assert done.code == 0, done.err
    translator = Translator.load(run, compiled=False)
    found = done.out.split("\n")[:-1]
    marked = list(map(TermList(terms).mark, LINES))
    assert marked[0] == "<term> 1 <is> 5 </term> 2 3"
    assert found == translator.translate(marked)
    assert [not line for line in found] == [not line for line in LINES]
    assert found != translator.translate(LINES)
