"""One model translates digits to words and words to digits, as it is asked.

Everything goes through the command line, as a person would do it.
"""

import json
import random

import pytest
import yaml
from digit_run import RECIPE, deepnmt_process

from keras_deepnmt.commands.serve import _directions

WORDS = "null eins zwei drei vier fünf sechs sieben acht neun".split()
TAGS = {"en": "<2en>", "de": "<2de>"}


def write_recipe(folder):
    draw = random.Random(4)
    corpora = {}
    for split, pairs in (("train", 4000), ("valid", 30), ("test", 40)):
        texts = [
            [draw.randrange(10) for _ in range(draw.randint(2, 7))]
            for _ in range(pairs)
        ]
        paths = {}
        for side, names in (("source", WORDS), ("target", range(10))):
            paths[side] = str(folder / f"{split}.{side}")
            lines = (" ".join(str(names[n]) for n in text) for text in texts)
            with open(paths[side], "w") as file:
                file.writelines(f"{line}\n" for line in lines)
        corpora[split] = [
            {**paths, "tag": "<2en>"},
            {**paths, "tag": "<2de>", "reversed": True},
        ]
    (folder / "base.yaml").write_text(RECIPE)
    recipe = {
        "extends": "base.yaml",
        "data": {
            **corpora,
            "vocabulary_size": 60,
            "source_language": "de",
            "target_language": "en",
        },
        "training": {"steps": 900, "validate_every": 900},
    }
    (folder / "both.yaml").write_text(yaml.safe_dump(recipe))


# Four minutes, of which training is most. What it needs is tested without
# training in tests/data/test_directions.py and tests/translator.
@pytest.mark.slow
def test_one_model_learns_both_directions(tmp_path):
    write_recipe(tmp_path)

    def run(*words):
        done = deepnmt_process(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done

    run("train", "both.yaml", "--run-dir", "run", "-q")
    texts = {
        side: (tmp_path / f"test.{side}").read_text().splitlines()
        for side in ("source", "target")
    }

    def right(side, found):
        pairs = zip(texts[side], found, strict=True)
        return sum(a == b for a, b in pairs) / len(found)

    for language, source, target in (
        ("en", "source", "target"),
        ("de", "target", "source"),
    ):
        words = ("--input", f"test.{source}", "--target-language", language)
        done = run("translate", "run", "-q", *words)
        assert right(target, done.stdout.splitlines()) >= 0.9, done.stdout
        run("evaluate", "run", "-q", "--target-language", language)
    done = deepnmt_process(
        *("translate", "run", "--input", "test.source"),
        *("--target-language", "fr"),
        folder=tmp_path,
    )
    assert done.returncode == 2
    assert "`--target-language` must be a language" in done.stderr
    assert "en, de. Received: fr" in done.stderr
    rows = json.loads((tmp_path / "run" / "scores.json").read_text())
    rows = rows["evaluations"]
    assert [row["test_set"]["sentences"] for row in rows] == [40, 40]
    assert [r["decoding"]["target_language"] for r in rows] == ["en", "de"]
    assert min(row["scores"]["bleu"]["value"] for row in rows) > 90
    from keras_deepnmt.serving import translate_in_fresh_process

    # The tag is a part of the text, or of the export.
    run("export", "run", "both")
    tagged = [f"<2de> {text}" for text in texts["target"]]
    found = translate_in_fresh_process(tmp_path / "both", tagged)
    assert right("source", found) >= 0.9
    run("export", "run", "german", "--target-language", "de")
    found = translate_in_fresh_process(tmp_path / "german", texts["target"])
    assert right("source", found) >= 0.9
    # A server knows the directions of all of them.
    served = {name: tmp_path / name for name in ("run", "both", "german")}
    known = _directions(served, None)
    assert (
        known["run"]
        == known["both"]
        == [
            ("de", "en", "<2en>"),
            ("en", "de", "<2de>"),
        ]
    )
    assert known["german"] == [("en", "de", None)]
