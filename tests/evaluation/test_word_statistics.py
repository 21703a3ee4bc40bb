"""What must be true of statistics of words, on sentences counted by hand."""

import pytest

from keras_deepnmt.evaluation import (
    copy_rate,
    length_ratio,
    repetition_rate,
)


def test_repetition_is_the_mean_share_of_repeated_n_grams():
    # 5 bigrams, 2 different ones; 2 bigrams, both different; no bigram.
    lines = ["the dog the dog the dog", "a b c", "a"]
    assert repetition_rate(lines, order=2) == pytest.approx(0.6 / 3)
    assert repetition_rate(["a a a a"], order=1) == pytest.approx(0.75)
    assert repetition_rate(["a b c d e f"]) == 0.0


def test_copies_share_half_of_their_words_with_the_source():
    # A word of the source can be copied once only.
    sources = ["ein Hund schläft", "ein Hund", "x y", "x"]
    hypotheses = ["a dog sleeps", "ein ein ein dog", "x z", ""]
    assert copy_rate(sources, hypotheses) == pytest.approx(1 / 4)
    assert copy_rate(sources, hypotheses, overlap=0.25) == pytest.approx(2 / 4)


def test_length_ratio_is_that_of_all_words():
    assert length_ratio(["a b", "c"], ["a", "b c."]) == pytest.approx(3 / 4)
    assert length_ratio(["a"], [""]) == float("inf")


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`order` must be at least 1"):
        repetition_rate(["a"], order=0)
    with pytest.raises(ValueError, match="2 sources, 1 hypotheses"):
        copy_rate(["a", "b"], ["a"])
