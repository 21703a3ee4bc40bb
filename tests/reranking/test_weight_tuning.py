"""What must be true of tuning the weights of several scores.

* a line search finds the best place of a line, exactly
* weights that are known to be right are found, and the same ones every time
"""

import numpy as np
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.reranking import tune_weights
from keras_deepnmt.reranking.line_search import best_place, upper_envelope
from keras_deepnmt.reranking.weight_tuning import METRICS

WORDS = "the dog a cat sits runs on mat ! house".split()


def random_text(draw, longest=9):
    return " ".join(draw.choice(WORDS, draw.integers(0, longest)))


@pytest.mark.parametrize("seed", range(50))
def test_the_envelope_is_the_highest_line_everywhere(seed):
    draw = np.random.default_rng(seed)
    # Few different numbers: equal and parallel lines, and common crossings.
    intercepts, slopes = draw.integers(-2, 3, (2, 6)).astype("float64")
    starts, lines = upper_envelope(intercepts, slopes)
    assert starts == sorted(set(starts))
    for place in draw.uniform(-6, 6, 100):
        number = np.searchsorted(starts, place) - 1
        heights = intercepts + place * slopes
        assert lines[number] == np.argmax(heights)


def random_lists(seed, num_scores=2, num_sentences=6):
    """Scores of random translations of a few sentences, and the texts."""
    draw = np.random.default_rng(seed)
    features, texts, references = [], [], []
    for _ in range(num_sentences):
        number = draw.integers(1, 6)
        features.append(draw.normal(size=(number, num_scores)))
        texts.append([random_text(draw) for _ in range(number)])
        references.append(random_text(draw) or "a")
    return features, texts, references


def chosen_score(features, texts, references, weights, metric):
    """The metric of the best translations by a weighted sum."""
    best = [
        found[int(np.argmax(rows @ weights))]
        for rows, found in zip(features, texts, strict=True)
    ]
    return corpus_scores(best, references, [metric])[metric].value


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(10))
def test_no_place_of_a_line_is_better(metric, seed):
    features, texts, references = random_lists(seed)
    counter = MetricCounts(metric)
    counts = [
        counter.of_texts(*pair) for pair in zip(texts, references, strict=True)
    ]
    place, score = best_place(
        *([rows[:, side] for rows in features] for side in (0, 1)),
        counts,
        counter,
    )

    def at(place):
        weights = np.array([1.0, place])
        return chosen_score(features, texts, references, weights, metric)

    assert at(place) == pytest.approx(score)
    assert max(map(at, np.linspace(-8, 8, 161))) <= score + 1e-9


def test_known_weights_are_found():
    """The right translation is the best one for 0.5 < w2 / w1 < 0.8 alone."""
    right, short, wrong = "a b c d e", "a b c", "a b x d e"
    features = [
        np.array([[0.0, 0.0], [1.0, -2.0], [-0.8, 1.0]]),
        np.array([[-0.8, 1.0], [0.0, 0.0]]),
        np.array([[0.0, 0.0]]),
    ]
    texts = [[right, short, wrong], [wrong, right], [right]]
    tuned = tune_weights(features, texts, [right] * 3)
    first, second = tuned.weights
    assert 0.5 < second / first < 0.8
    assert first + second == pytest.approx(1)
    assert tuned.score == pytest.approx(100)
    alone = chosen_score(
        features, texts, [right] * 3, np.array([1.0, 0.0]), "bleu"
    )
    assert tuned.first_score == pytest.approx(alone)
    assert alone < 90


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(5))
def test_weights_are_repeatable_and_no_worse_than_a_score_alone(metric, seed):
    features, texts, references = random_lists(seed, 3)
    lists = features, texts, references
    tuned = tune_weights(*lists, metric)
    assert tuned == tune_weights(*lists, metric)
    weights = np.array(tuned.weights)
    assert np.abs(weights).sum() == pytest.approx(1)
    assert chosen_score(*lists, weights, metric) == pytest.approx(tuned.score)
    for alone in np.eye(3):
        assert chosen_score(*lists, alone, metric) <= tuned.score + 1e-9


def test_useless_scores_change_nothing():
    features = [np.zeros((2, 2)), np.zeros((1, 2))]
    tuned = tune_weights(features, [["a", "b"], ["c"]], ["b", "c"], "chrf")
    assert tuned.score == tuned.first_score
    assert tuned.weights == (0.5, 0.5)


def test_wrong_arguments_are_refused():
    features = [np.zeros((2, 1))]
    with pytest.raises(ValueError, match="the same length"):
        tune_weights(features, [["a", "b"]], ["a", "b"])
    with pytest.raises(ValueError, match="a row of the same number of scores"):
        tune_weights(features, [["a"]], ["a"])
    with pytest.raises(UserError, match="must be one of bleu, chrf"):
        tune_weights(features, [["a", "b"]], ["a"], "ter")
    with pytest.raises(UserError, match="tokenize"):
        tune_weights(features, [["a", "b"]], ["a"], tokenize="words")
