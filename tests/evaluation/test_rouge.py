"""What must be true of ROUGE, on examples counted by hand."""

import importlib.util
import sys

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import rouge_scores

# Lin (2004), section 3: the same bigrams, another order.
REFERENCE = "police killed the gunman"
CLOSE = "police kill the gunman"
SWAPPED = "the gunman kill police"

# Not in the extra [dev]: where it is installed, keras-hub imports it in every
# process, which takes seconds.
needs_rouge = pytest.mark.skipif(
    importlib.util.find_spec("rouge_score") is None,
    reason="needs the package rouge-score, of the extra [rouge]",
)


@needs_rouge
def test_the_example_of_the_paper():
    close = rouge_scores([CLOSE], [[REFERENCE]], stemming=False)
    swapped = rouge_scores([SWAPPED], [[REFERENCE]], stemming=False)
    # One bigram of three, "the gunman", in both: ROUGE-2 cannot tell them.
    assert close["rouge2"] == swapped["rouge2"] == pytest.approx(100 / 3)
    # The longest common subsequences have three and two words of four.
    assert close["rougeL"] == pytest.approx(75)
    assert swapped["rougeL"] == pytest.approx(50)
    assert close["rouge1"] == swapped["rouge1"] == pytest.approx(75)
    # With the stem of "killed" they are all the same words.
    assert rouge_scores([CLOSE], [[REFERENCE]])["rouge1"] == pytest.approx(100)


@needs_rouge
def test_f_weighs_precision_and_recall_equally():
    scores = rouge_scores(["a b c d"], [["a b"]], stemming=False)
    assert scores["rouge1"] == pytest.approx(100 * 2 * 0.5 / 1.5)


@needs_rouge
def test_the_best_reference_counts_and_the_mean_over_summaries():
    scores = rouge_scores(
        ["a b", "c d"], [["x y", "a b"], ["c x"]], stemming=False
    )
    assert scores["rouge1"] == pytest.approx((100 + 50) / 2)


@needs_rouge
def test_an_empty_line_is_no_reference():
    alone = rouge_scores(["a b", ""], [["x a"], ["c"]], stemming=False)
    assert alone == rouge_scores(
        ["a b", ""], [["", "x a"], ["c", ""]], stemming=False
    )


@needs_rouge
def test_letters_are_words_in_scripts_without_spaces():
    chinese = "今天早上，我买了 iPhone。"
    scores = rouge_scores([chinese], [[chinese]])
    assert list(scores.values()) == pytest.approx([100] * 3)
    # One of seven letters and a word; punctuation does not count.
    changed = rouge_scores(["今天晚上我买了 iPhone"], [[chinese]])
    assert changed["rouge1"] == pytest.approx(100 * 7 / 8)


def test_wrong_references_and_a_missing_package_are_named(monkeypatch):
    with pytest.raises(ValueError, match="a list of one or more texts"):
        rouge_scores(["a"], ["a"])
    with pytest.raises(ValueError, match="1 hypotheses, 2 references"):
        rouge_scores(["a"], [["a"], ["b"]])
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(UserError, match=r"keras_deepnmt\[rouge\]"):
        rouge_scores(["a"], [["a"]])
