"""What must be true of minimum risk training.

* BLEU of a sentence is its equation, written with counters
* risk and gradient are exact if the candidates are all translations
* candidates are drawn from the model, others in each update, and repeated ones
  count once
* the weight mixes cross-entropy and risk, and other terms read the attention of
  the references
* training with it lowers the risk
* wrong arguments are refused
"""

import collections
import itertools
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_deepnmt.models import GuidedAlignment, Transformer
from keras_deepnmt.training import MinimumRisk
from keras_deepnmt.training.sentence_bleu import sentence_bleu


def as_array(x):
    return ops.convert_to_numpy(x)


def counted_bleu(candidate, reference):
    """Lin and Och (2004), Section 4, with the words of two sentences."""

    def ngrams(words, n):
        return collections.Counter(
            tuple(words[i : i + n]) for i in range(len(words) - n + 1)
        )

    logs = []
    for n in range(1, 5):
        own, of_reference = ngrams(candidate, n), ngrams(reference, n)
        matches, total = sum((own & of_reference).values()), sum(own.values())
        if n > 1:
            matches, total = matches + 1, total + 1
        if not matches:
            return 0.0
        logs.append(math.log(matches / total))
    return math.exp(min(0, 1 - len(reference) / len(candidate)) + sum(logs) / 4)


def padded(rows, length):
    return np.array(
        [[*row, *[0] * (length - len(row))] for row in rows], "int32"
    )


def test_bleu_of_a_sentence_is_that_of_the_paper():
    draw = np.random.default_rng(4)
    references = [draw.integers(4, 8, size).tolist() for size in (1, 4, 7, 9)]
    candidates = [
        [draw.integers(4, 8, size).tolist() for size in (0, 1, 3, 8, 11)]
        + [row, row[:-1] + [9, 9]]
        for row in references
    ]
    found = sentence_bleu(
        np.stack([padded([[*c, 3] for c in row], 14) for row in candidates]),
        padded([[*row, 3] for row in references], 12),
    )
    expected = [
        [counted_bleu(c, row) for c in some]
        for some, row in zip(candidates, references, strict=True)
    ]
    np.testing.assert_allclose(as_array(found), expected, rtol=1e-5)


def small_model(dropout=0.0, seed=3):
    keras.utils.set_random_seed(seed)
    return Transformer(9, 6, 8, 16, 2, 1, 1, dropout=dropout)


SOURCES = np.array([[5, 6, 3], [7, 3, 0]], "int32")
LABELS = np.array([[4, 5, 3], [5, 3, 0]], "int32")
INPUTS = {
    "source_ids": SOURCES,
    "target_ids": np.array([[2, 4, 5], [2, 5, 0]], "int32"),
}
# All translations of up to two words, 4 and 5; the references are among them.
ALL = [
    [*words, 3]
    for size in range(3)
    for words in itertools.product((4, 5), repeat=size)
]


class Enumerated(MinimumRisk):
    """Every translation is a candidate, in place of some that are drawn."""

    def __init__(self, **options):
        super().__init__(num_samples=len(ALL), **options)

    def draw(self, model, source_ids, references, seed):
        rows = ops.convert_to_tensor(padded(ALL, 3))
        return ops.repeat(rows[None], ops.shape(source_ids)[0], axis=0)


def exact_risk(model, alpha):
    """The expectation over all translations, each scored by itself."""
    risks = []
    for source, label in zip(SOURCES, LABELS, strict=True):
        reference = [int(word) for word in label if word > 3]
        logs, costs = [], []
        for candidate in ALL:
            target = np.array([[2, *candidate[:-1]]], "int32")
            inputs = {"source_ids": source[None], "target_ids": target}
            scores = as_array(model.log_probs(model(inputs)))[0]
            logs.append(
                sum(scores[t, word] for t, word in enumerate(candidate))
            )
            words = candidate[:-1]
            costs.append(1 - (counted_bleu(words, reference) if words else 0))
        weights = np.exp(alpha * np.array(logs, "float64"))
        risks.append(float(np.dot(weights / weights.sum(), costs)))
    return risks


@pytest.mark.parametrize(
    "alpha", [0.2, pytest.param(1.0, marks=pytest.mark.thorough)]
)
def test_the_risk_is_the_expected_cost(alpha):
    model = small_model()
    model.compile(
        "sgd", objective_terms=[Enumerated(alpha=alpha)], jit_compile=False
    )
    logs = model.train_on_batch(INPUTS, LABELS, return_dict=True)
    risks = exact_risk(small_model(), alpha)
    # Three and two tokens.
    expected = (3 * risks[0] + 2 * risks[1]) / 5
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_weight_mixes_cross_entropy_and_risk():
    class Known(MinimumRisk):
        def risk(self, model, source_ids, references):
            return ops.convert_to_tensor([0.25, 0.75])

    losses = np.arange(6.0, dtype="float32").reshape(2, 3)
    found = Known(weight=0.3).change_losses(None, LABELS, None, losses, SOURCES)
    expected = 0.7 * losses + 0.3 * np.array([[0.25], [0.75]])
    np.testing.assert_allclose(as_array(found), expected, rtol=1e-6)


class Noted(Enumerated):
    """Notes the seeds that it is given."""

    def draw(self, model, source_ids, references, seed):
        self.seeds = [*getattr(self, "seeds", ()), int(seed)]
        return super().draw(model, source_ids, references, seed)


def test_each_update_has_its_draws_and_others_keep_their_attention():
    model, term = small_model(), Noted()
    # It reads the attention to the source in the forward of the references.
    other = GuidedAlignment()
    model.compile("sgd", objective_terms=[term, other])
    model(INPUTS, training=True)
    (before,) = model.attention_to_source
    for update in (0, 7):
        model.optimizer.iterations.assign(update)
        term.risk(model, SOURCES, LABELS)
    assert term.seeds == [0, 7]
    (after,) = model.attention_to_source
    assert after is before


@pytest.mark.thorough(each_commit=True)
def test_the_gradient_is_that_of_the_expected_cost():
    model, rate = small_model(), 1.0
    model.compile(
        keras.optimizers.SGD(rate), objective_terms=[Enumerated(alpha=1.0)]
    )
    before = model.get_weights()
    model.train_on_batch(INPUTS, LABELS)
    after = model.get_weights()
    moved = [(b - a) / rate for b, a in zip(before, after, strict=True)]
    # The largest entries, by differences of the exact expectation.
    probe, step = small_model(), 1e-2
    for place in np.argsort([-abs(g).max() for g in moved])[:3]:
        index = np.unravel_index(abs(moved[place]).argmax(), moved[place].shape)
        values = []
        for sign in (1, -1):
            weights = [w.copy() for w in before]
            weights[place][index] += sign * step
            probe.set_weights(weights)
            risks = exact_risk(probe, 1.0)
            values.append((3 * risks[0] + 2 * risks[1]) / 5)
        slope = (values[0] - values[1]) / (2 * step)
        assert moved[place][index] == pytest.approx(slope, rel=0.02)


def test_candidates_are_drawn_from_the_model():
    model = small_model()
    term = MinimumRisk(num_samples=4)
    model.compile("sgd", objective_terms=[term])
    drawn = as_array(term.draw(model, SOURCES, LABELS, 0))
    assert drawn.shape == (2, 4, 4)
    # No longer than 1.5 times the references; each ends, then is padding.
    for row in drawn.reshape(-1, 4):
        words = row[: list(row).index(3)]
        assert (words > 0).all() and not row[len(words) + 1 :].any()
    again, other = (term.draw(model, SOURCES, LABELS, seed) for seed in (0, 5))
    np.testing.assert_array_equal(drawn, as_array(again))
    assert (drawn != as_array(other)).any()


class Repeated(MinimumRisk):
    """Draws one candidate twice."""

    def draw(self, model, source_ids, references, seed):
        rows = ops.convert_to_tensor(padded([[4, 3]] * self.num_samples, 2))
        return ops.repeat(rows[None], ops.shape(source_ids)[0], axis=0)


@pytest.mark.thorough
def test_a_repeated_candidate_counts_once():
    losses = set()
    for number in (1, 2, 5):
        model = small_model()
        model.compile("sgd", objective_terms=[Repeated(number, alpha=1.0)])
        logs = model.train_on_batch(INPUTS, LABELS, return_dict=True)
        losses.add(round(float(logs["loss"]), 5))
    assert len(losses) == 1


@pytest.mark.thorough
def test_training_lowers_the_risk():
    model = small_model(seed=5)
    term = MinimumRisk(num_samples=6, alpha=1.0)
    model.compile(keras.optimizers.Adam(0.02), objective_terms=[term])
    risks = [float(model.train_on_batch(INPUTS, LABELS)[0]) for _ in range(40)]
    assert np.mean(risks[-5:]) < np.mean(risks[:5]) - 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_samples", 0),
        ("alpha", 0.0),
        ("weight", 1.5),
        ("temperature", math.inf),
        ("max_length_ratio", -1.0),
    ],
)
def test_wrong_arguments_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .* {name}={value}"):
        MinimumRisk(**{name: value})
