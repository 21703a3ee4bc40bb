"""`--alignments` and `--replace-unknown` use the attention to the source."""

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.analysis import align_words, replace_unknown
from keras_deepnmt.evaluation import format_alignment

SENTENCES = ["1 2 3", "", "4 4 1 7"]


@pytest.mark.thorough(each_commit=True)
def test_lines_are_those_of_the_function(deepnmt, digits, tmp_path):
    source, found = tmp_path / "source", tmp_path / "found"
    source.write_text("".join(f"{line}\n" for line in SENTENCES))
    words = ["--alignments", found, "--alignment-layer", "1"]
    done = deepnmt(
        *("translate", digits / "run", "--input", source, *words),
        *("--no-compile", "-q"),
    )
    assert done.code == 0, done.err
    targets = done.out.split("\n")[:-1]
    translator = Translator.load(digits / "run", compiled=False)
    expected = align_words(translator, SENTENCES, targets, layer=1)
    lines = found.read_text().split("\n")[:-1]
    assert lines == [format_alignment(links) for links in expected]
    assert lines[1] == ""


@pytest.mark.thorough
def test_equal_models_align_and_replace_as_one(deepnmt, digits, tmp_path):
    source, run = tmp_path / "source", digits / "run"
    source.write_text("1 2 Łódź\n\n4 5\n")
    words = ["--input", source, "--no-compile", "-q", "--replace-unknown"]
    results = []
    for name, runs in (("one", [run]), ("two", [run, run])):
        done = deepnmt(
            "translate", *runs, *words, "--alignments", tmp_path / name
        )
        assert done.code == 0, done.err
        results.append((done.out, (tmp_path / name).read_text()))
    assert results[0] == results[1]


@pytest.mark.thorough
def test_a_block_that_the_model_lacks_is_refused(refused, digits, tmp_path):
    words = ["--alignments", tmp_path / "a", "--alignment-layer", "99"]
    source = tmp_path / "source"
    source.write_text("1 2\n")
    error = refused("translate", digits / "run", "--input", source, *words)
    assert "--alignment-layer must be a decoder block" in error
    assert not (tmp_path / "a").exists()


def test_a_block_that_nothing_uses_is_refused(refused, digits):
    error = refused("translate", digits / "run", "--alignment-layer", "1")
    assert "--alignment-layer needs --alignments, --replace-unknown" in error


@pytest.mark.thorough
def test_unknown_words_are_those_of_the_function(deepnmt, digits, tmp_path):
    files = {
        "source": "1 2 Łódź\n\n4 5\n",
        # A given beginning that the vocabulary lacks, which stays.
        "prefixes": "x\n\n\n",
        "table": "1\tI\n2\tII\nŁódź\tLodz\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = [digits / "run", "--input", tmp_path / "source", "--no-compile"]
    # At random, so that some tokens are unknown.
    words += ["--sampling", "true", "--sampling-temperature", "9"]
    words += ["--prefixes", tmp_path / "prefixes", "--num-beams", "6"]
    words += ["--num-hypotheses", "6", "--alignment-layer", "1", "-q"]
    words += ["--replace-unknown"]
    translator = Translator.load(
        digits / "run",
        compiled=False,
        num_beams=6,
        sampling=True,
        sampling_temperature=9.0,
    )
    # The command's batch, since the others' length changes the rounding.
    batch = files["source"].splitlines()
    [nbest, *_] = translator.translate_nbest(
        batch, 6, prefixes=files["prefixes"].splitlines()
    )
    assert any("⁇" in hypothesis.text for hypothesis in nbest)
    for table, option in (
        (None, []),
        ({"1": "I", "2": "II", "Łódź": "Lodz"}, [tmp_path / "table"]),
    ):
        done = deepnmt("translate", *words, *option)
        assert done.code == 0, done.err
        assert "⁇" not in done.out
        sources = ["1 2 Łódź"] * 6
        found = replace_unknown(translator, sources, nbest, table, layer=1)
        assert done.out.splitlines()[:6] == [
            f"0 ||| {h.text} ||| {h.score:.6f}" for h in found
        ]
        assert all(hypothesis.text.startswith("x") for hypothesis in found)


def test_what_cannot_be_done_is_refused_at_the_start(
    refused, digits, tmp_path, monkeypatch
):
    words = ["translate", digits / "run", "-q"]
    options = ["--allow-unknown", "false", "--replace-unknown"]
    assert "Give --allow-unknown true" in refused(*words, *options)
    error = refused(*words, "--replace-unknown", "missing.tsv")
    assert "missing.tsv" in error
    # Also where no token is unknown.
    layer = ["--alignment-layer", "9"]
    error = refused(*words, *layer, "--replace-unknown")
    assert "--alignment-layer must be a decoder block" in error
    source = tmp_path / "marked"
    source.write_text("1 2\n<b>1</b> 2 3\n")
    words += ["--input", source, "--no-compile", *layer]
    # Before anything is translated, also lines that are not aligned.
    monkeypatch.setattr(Translator, "translate_nbest", pytest.fail)
    for more in (["--keep-markup"], ["--alignments", tmp_path / "links"]):
        error = refused(*words, *more)
        assert "--alignment-layer must be a decoder block" in error
