"""Tags on the command line: `--tag` is the tag in the text, as in training."""

import random
from types import SimpleNamespace

import pytest
import yaml
from digit_run import RECIPE
from jsonargparse import Namespace
from toy_model import ToyModel

from keras_deepnmt import Translator, cli
from keras_deepnmt.commands import evaluate, score
from keras_deepnmt.commands.options import decoding
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.runs import checkpoints, test_translations
from keras_deepnmt.translator.batch_decoder import BatchDecoder
from keras_deepnmt.translator.results import TargetScore

LINES = ["1 2 3", "", "4 4 1 7", "9 8 7 6 5"]
TAGS = ("<copy>", "<reverse>")


def digit_pairs(tag, number, seed):
    draw = random.Random(seed)
    pairs = []
    for _ in range(number):
        digits = [str(draw.randrange(10)) for _ in range(draw.randint(3, 8))]
        order = 1 if tag == "<copy>" else -1
        pairs.append((" ".join(digits), " ".join(digits[::order])))
    return pairs


def write_recipe(folder, pairs, **training):
    """A recipe that extends one, and its corpora, one for each tag."""
    splits = {"train": pairs, "valid": 20, "test": 30}
    corpora = {}
    for seed, (split, number) in enumerate(splits.items()):
        for tag in TAGS:
            found = digit_pairs(tag, number, seed)
            name = f"{split}{tag[1:-1]}"
            paths = [str(folder / f"{name}.{s}") for s in ("source", "target")]
            for path, side in zip(paths, zip(*found, strict=True), strict=True):
                with open(path, "w") as file:
                    file.writelines(f"{text}\n" for text in side)
            corpus = dict(zip(("source", "target"), paths, strict=True))
            corpora.setdefault(split, []).append({**corpus, "tag": tag})
    (folder / "base.yaml").write_text(RECIPE)
    recipe = {
        "extends": "base.yaml",
        "data": {
            "train": corpora["train"],
            "valid": corpora["valid"][1],
            "test": corpora["test"][0],
            "vocabulary_size": 27,
        },
        "training": training,
    }
    (folder / "tags.yaml").write_text(yaml.safe_dump(recipe))
    return folder / "tags.yaml"


def train(folder, pairs, **training):
    recipe = write_recipe(folder, pairs, **training)
    code = cli.main(["train", str(recipe), "--run-dir", str(folder / "run")])
    assert code == 0
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of few updates."""
    steps = {"steps": 2, "validate_every": 2, "checkpoint_every": 1}
    return train(
        tmp_path_factory.mktemp("tags"),
        200,
        **steps,
        batch_tokens=256,
        jit_compile=False,
    )


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "source"
    file.write_text("".join(f"{line}\n" for line in LINES))
    return file


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"target_language": "en"}),
        ({"target_language": "de"}, {"target_language": "de"}),
        ({"tag": "<2de>"}, {"tag": "<2de>"}),
    ],
)
def test_a_document_is_translated_into_its_language(
    monkeypatch, given, expected
):
    """By a model of several, where the command names none."""
    known = Directions(
        {"source": source, "target": target, "tag": f"<2{target}>"}
        for source, target in (("de", "en"), ("en", "de"))
    )
    monkeypatch.setattr(
        checkpoints,
        "open_run",
        lambda run, checkpoint: SimpleNamespace(directions=known),
    )
    monkeypatch.setattr(decoding, "languages_of_run", lambda run: ("de", "en"))
    monkeypatch.setattr(decoding, "load_run", lambda run, step, given: given)
    options = Namespace(runs=["both"], **given)
    assert decoding.load_translator(options, has_languages=True) == expected
    # Lines of text have the tags that they begin with.
    assert decoding.load_translator(options) == given


def test_an_evaluation_names_options_and_no_arguments(refused, monkeypatch):
    def refuse(*_, **__):
        raise UserError("`target_language` is unknown. Give `source_file`.")

    monkeypatch.setattr(test_translations, "translate_runs", refuse)
    error = refused("evaluate", "run", "--target-language", "fr")
    assert "`--target-language` is unknown. Give `--source`." in error


@pytest.mark.parametrize(
    "words", [["translate"], ["score"], ["export", "served"]]
)
def test_a_tag_that_the_model_lacks_is_refused(
    refused, digits, tmp_path, words
):
    verb, *more = words
    more = [tmp_path / name for name in more]
    error = refused(verb, digits / "run", *more, "--tag", "<2de>")
    assert "`--tag` must be a user-defined symbol" in error
    assert "--tag <2de>" in error and "symbols are: none" in error
    assert not list(tmp_path.iterdir())


def test_a_tag_is_refused_where_it_has_no_effect(refused, digits, tmp_path):
    error = refused("evaluate", digits / "run", "--tag", "<2de>")
    assert "--tag needs --source" in error
    words = ["--format", "preset", "--tag", "<2de>"]
    error = refused("export", digits / "run", tmp_path / "preset", *words)
    assert "--tag cannot be given with --format preset" in error
    words = ["--hypotheses", "a", "--references", "b", "--tag", "<2de>"]
    assert "--tag cannot be given with" in refused("evaluate", *words)


@pytest.mark.thorough
def test_a_tag_is_put_before_each_line(deepnmt, run, source):
    words = [run, "--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", *words, "--tag", "<reverse>")
    assert done.code == 0 and not done.err, done.err
    translator = Translator.load(run, compiled=False)
    texts = [f"<reverse> {line}" if line else "" for line in LINES]
    assert done.out.split("\n")[:-1] == translator.translate(texts)
    checkpoint = [*words, "--checkpoint", "2", "--tag", "<copy>"]
    assert deepnmt("translate", *checkpoint).code == 0


@pytest.mark.thorough
def test_an_unknown_tag_is_refused_with_the_known_ones(refused, run, source):
    error = refused("translate", run, "--input", source, "--tag", "<2de>")
    assert "`--tag` must be a user-defined symbol" in error
    assert "--tag <2de>" in error and "<copy>, <reverse>" in error


@pytest.mark.thorough
def test_lines_without_a_tag_are_warned_of_once(deepnmt, run, source):
    words = ["--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", run, *words)
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert "none of the tags of the training text, <copy>, <reverse>" in (
        done.err
    )


@pytest.mark.thorough
def test_pairs_are_scored_with_the_tag(deepnmt, run, source):
    words = ["--source", source, "--target", source, "--no-compile", "-q"]
    done = deepnmt("score", run, *words, "--totals", "--tag", "<copy>")
    assert done.code == 0, done.err
    translator = Translator.load(run, compiled=False, tag="<copy>")
    totals = [score.total for score in translator.score(LINES, LINES)]
    found = [float(row.split("\t")[2]) for row in done.out.splitlines()[1:]]
    assert found == pytest.approx(totals, abs=1e-4)


def test_a_target_whose_tag_makes_it_too_long_is_not_scored(
    deepnmt, tmp_path, monkeypatch
):
    words = "small dogs run".split()
    tokenizer = train_tokenizer(
        words * 9, tmp_path / "t.model", 30, user_defined_symbols=["<2de>"]
    )
    long = "small dogs run small"
    most = len(tokenizer.encode([long])[0]) + 1
    translator = Translator(
        *(ToyModel(30, 30, max_length=most), tokenizer, tokenizer),
        compiled=False,
        tag_side="target",
        tag="<2de>",
    )
    monkeypatch.setattr(score, "load_translator", lambda options: translator)
    # The numbers do not matter, and computing them would take long.
    monkeypatch.setattr(
        *(BatchDecoder, "scores_of"),
        lambda _, rows, *__: [TargetScore(("a",), (-1,), -1)] * len(rows),
    )
    pairs = tmp_path / "pairs"
    pairs.write_text(f"dogs\tdogs\ndogs\t{long}\ndogs\tsmall\n")
    done = deepnmt("score", "run", "--totals", "--no-compile", stdin=pairs)
    assert done.code == 0, done.err
    rows = [row.split("\t") for row in done.out.splitlines()[1:]]
    assert [tokens for _, tokens, _ in rows] == ["1", "0", "1"]
    assert [total == "nan" for _, _, total in rows] == [False, True, False]
    assert f"line 2: the target with its tag is longer than {most - 1}" in (
        done.err
    )


@pytest.mark.thorough
def test_the_runs_own_text_has_its_tags(deepnmt, run, source):
    files = ["--source", source, "--target", source, "--metrics", "bleu"]
    for tag in TAGS:
        done = deepnmt(
            *("evaluate", run, *files, "--tag", tag, "--no-compile", "-q"),
        )
        assert done.code == 0, done.err
    done = deepnmt("evaluate", run, "--no-compile", "-q")
    assert done.code == 0 and "tag" not in done.err, done.err
    rows = yaml.safe_load((run / "scores.json").read_text())["evaluations"]
    assert [row["decoding"].get("tag") for row in rows] == [*TAGS, None]


def test_sentences_with_gold_edits_are_corrected_with_the_tag(
    deepnmt, tmp_path, monkeypatch
):
    text = "small dogs run"
    tokenizer = train_tokenizer(
        [text] * 9, tmp_path / "t.model", 30, user_defined_symbols=["<2de>"]
    )
    model = ToyModel(30, 30)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)
    # The correction is what the model reads; a search would take long.
    monkeypatch.setattr(
        *(Translator, "translate"),
        lambda self, texts, on_progress: self.tagged(texts),
    )
    monkeypatch.setattr(checkpoints, "open_run", lambda run, checkpoint: None)
    monkeypatch.setattr(
        *(evaluate, "load_run"),
        lambda run, checkpoint, given: translator.replaced(tag=given["tag"]),
    )
    (tmp_path / "gold.m2").write_text(f"S {text}\n")
    words = ["--m2", tmp_path / "gold.m2", "--output", tmp_path / "out"]
    done = deepnmt("evaluate", "run", *words, "--tag", "<2de>")
    assert done.code == 0, done.err
    assert (tmp_path / "out").read_text() == f"<2de> {text}\n"


@pytest.mark.thorough
def test_a_preset_folder_knows_the_tags(deepnmt, run, tmp_path):
    preset = tmp_path / "preset"
    done = deepnmt("export", run, preset, "--format", "preset")
    assert done.code == 0 and "none of the tags" not in done.err, done.err
    (tmp_path / "line").write_text("1 2\n")
    words = ["--input", tmp_path / "line", "--no-compile", "-q"]
    done = deepnmt("translate", preset, *words)
    assert "none of the tags" in done.err


# 74 s, of which training is most. That a tag reaches the model and the export
# as one piece is tested above and in tests/serving.
@pytest.mark.slow
def test_one_model_learns_what_each_tag_asks_for(deepnmt, tmp_path):
    """A model of two tags copies or reverses, in every command."""
    run = train(tmp_path, 6000, steps=600, validate_every=600)
    files = [tmp_path / f"{name}.source" for name in ("testcopy", "own")]
    lines = files[0].read_text().splitlines()
    files[1].write_text("".join(f"<reverse> {line}\n" for line in lines))
    reversed_lines = [line[::-1] for line in lines]

    def right(expected, out):
        pairs = zip(expected, out.splitlines(), strict=True)
        return sum(a == b for a, b in pairs) / len(expected)

    for words, expected in (
        ((files[0], "--tag", "<copy>"), lines),
        ((files[0], "--tag", "<reverse>"), reversed_lines),
        ((files[1],), reversed_lines),
    ):
        done = deepnmt("translate", run, "-q", "--input", *words)
        assert done.code == 0 and right(expected, done.out) >= 0.9, done.out
    served = tmp_path / "served"
    assert deepnmt("export", run, served, "--tag", "<reverse>").code == 0
    from keras_deepnmt.serving import translate_in_fresh_process

    found = translate_in_fresh_process(served, lines)
    assert right(reversed_lines, "\n".join(found)) >= 0.9
    # Tuning reads the text with the tag, too.
    words = ["--source", files[0], "--target", files[0], "--num-beams", "3"]
    done = deepnmt(
        *("tune", run, "--rerank", run, *words, "-q", "--tag", "<copy>")
    )
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["tuning"]["tag"] == "<copy>"
