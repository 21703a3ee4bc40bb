"""What must be true of scores.

* they are sacreBLEU's, and carry its signature
* an empty line is not a reference, whatever its set
* what cannot be scored is refused
"""

import pytest
import sacrebleu

from keras_deepnmt.evaluation import corpus_scores

HYPOTHESES = ["The cat sat on a mat .", "a small dog runs home quickly"]
REFERENCES = ["the cat sat on the mat .", "a small dog runs home fast"]


def test_scores_are_those_of_sacrebleu():
    scores = corpus_scores(HYPOTHESES, REFERENCES)
    assert list(scores) == ["bleu", "chrf", "ter"]
    for name, function in [
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ]:
        expected = function(HYPOTHESES, [REFERENCES]).score
        assert scores[name].value == pytest.approx(expected)
        assert scores[name].signature.startswith("nrefs:1|")
        assert f"version:{sacrebleu.__version__}" in scores[name].signature


def test_options_change_score_and_signature():
    options = {"metrics": ["bleu"], "tokenize": "none"}
    mixed = corpus_scores(HYPOTHESES, REFERENCES, **options)["bleu"]
    lower = corpus_scores(HYPOTHESES, REFERENCES, lowercase=True, **options)
    assert "tok:none" in mixed.signature and "case:mixed" in mixed.signature
    assert "case:lc" in lower["bleu"].signature
    assert lower["bleu"].value > mixed.value
    assert str(mixed) == f"{mixed.value:.2f} ({mixed.signature})"


def test_tokenised_text_is_scored_in_silence(capfd):
    lines = ["it is so ."] * 200
    corpus_scores(lines, lines, ["bleu"], tokenize="none")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_line_is_no_reference(empty):
    # The empty line would be the reference of the closest length.
    short, long = ["a b c d"], ["a b c d e f g h i j"]
    alone = corpus_scores(short, long)
    assert alone["bleu"].value == pytest.approx(22.31, abs=0.005)
    assert corpus_scores(short, long, more_references=[[empty]]) == alone
    assert corpus_scores(short, [empty], more_references=[long]) == alone
    resampled = corpus_scores(
        *(short * 3, long * 2 + [""]),
        num_resamples=10,
        more_references=[["", *long * 2]],
    )
    assert resampled["bleu"].value == pytest.approx(alone["bleu"].value)
    assert "nrefs:var" in resampled["bleu"].signature
    assert resampled["bleu"].interval == pytest.approx(0.0, abs=1e-9)


def test_weak_translations_have_intervals():
    # Samples without the first sentence have nothing right.
    hypotheses, references = ["a b c d"] + ["mm"] * 6, ["a b c d"] + ["xx"] * 6
    for name, score in corpus_scores(
        hypotheses, references, num_resamples=200
    ).items():
        assert score.interval > 1, name
        assert type(score.interval) is float, name  # scores.json has it


@pytest.mark.parametrize("letter", ["x", "字", "า"])
def test_small_texts_with_an_empty_reference_have_intervals(letter):
    # Some samples have empty references only.
    ter = corpus_scores(
        [letter] * 4,
        [letter, "", letter, letter],
        ["ter"],
        tokenize="char",
        num_resamples=500,
    )["ter"]
    assert ter.value == pytest.approx(100 / 3)
    assert ter.interval > 1


def test_a_sentence_without_any_reference_has_an_empty_one():
    scores = corpus_scores(
        HYPOTHESES, [REFERENCES[0], ""], more_references=[["", ""]]
    )
    assert scores == corpus_scores(HYPOTHESES, [REFERENCES[0], ""])


def test_refuses_what_cannot_be_scored():
    with pytest.raises(ValueError, match="2 hypotheses, 1 references"):
        corpus_scores(HYPOTHESES, REFERENCES[:1])
    with pytest.raises(ValueError, match="2 references, 1 more_references"):
        corpus_scores(HYPOTHESES, REFERENCES, more_references=[["a"]])
    with pytest.raises(ValueError, match="0 hypotheses, 0 references"):
        corpus_scores([], [])
    with pytest.raises(ValueError, match="bleu, chrf, ter.*'blue'"):
        corpus_scores(HYPOTHESES, REFERENCES, ["blue"])
    with pytest.raises(ValueError, match="`tokenize`.*13a.*tokenize='14a'"):
        corpus_scores(HYPOTHESES, REFERENCES, tokenize="14a")
