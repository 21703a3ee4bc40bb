"""What must be true of p-values.

* the randomization test has the p-value of all ways to swap sentences, with
  any metric and several references; drawn swaps come close to it
* of systems that do not differ, no p-value is too often small: where each
  sentence counts alike, it is that of the sign test
* one changed sentence says nothing, and five at least 2 / 2^5
* the draws are those of sacreBLEU, whose tests differ in ties only
* no p-value is printed as zero
"""

import itertools
import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from keras_deepnmt.evaluation import (
    compare_systems,
    corpus_scores,
    format_p_value,
)
from keras_deepnmt.evaluation.p_values import (
    bootstrap_p_value,
    randomization_p_value,
)

REFERENCES = [
    "a dog sleeps in the small house",
    "two cats run over the street .",
    "the man reads",
    "she gives him a red book",
    "they see nothing at all today",
    "a child plays with a ball",
]
MORE = [
    "the dog is asleep in a small house",
    "over the street run two cats .",
    "",
    "she hands a red book to him",
    "",
    "a child is playing ball",
]
SYSTEM = [
    "a dog sleeps in a small house",
    "two cats run on the street .",
    "the man reads",
    "she gives him the red book",
    "they see nothing today",
    "child plays with ball",
]
BASELINE = [
    "the dog in the small house",
    "two cats run over street",
    "man reads the",
    "she gives him a red book",
    "they see not a thing today",
    "child plays with ball",
]


def sum_of(sums):
    return sums[:, 0]


def column(values):
    return np.array(values, "float64")[:, None]


@pytest.mark.parametrize("more", [(), (MORE,)])
@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_the_p_value_is_that_of_all_ways_to_swap_sentences(metric, more):
    def difference(one, other):
        first, second = (
            corpus_scores(lines, REFERENCES, [metric], more_references=more)
            for lines in (one, other)
        )
        return first[metric].value - second[metric].value

    seen = difference(SYSTEM, BASELINE)
    found = []
    pairs = list(zip(SYSTEM, BASELINE, strict=True))
    for swap in itertools.product((False, True), repeat=len(pairs)):
        ways = [p[::-1] if s else p for p, s in zip(pairs, swap, strict=True)]
        found.append(abs(difference(*zip(*ways, strict=True))))
    expected = np.mean([size >= abs(seen) - 1e-9 for size in found])
    compared = compare_systems(
        SYSTEM, BASELINE, REFERENCES, [metric], more_references=more
    )[metric]
    assert compared.difference == pytest.approx(seen)
    assert compared.randomization_p_value == pytest.approx(expected)
    assert 0.03 < expected < 1


@pytest.mark.parametrize("seed", range(5))
def test_drawn_swaps_come_close_to_all_of_them(seed):
    draw = np.random.default_rng(seed)
    system, baseline = draw.normal(size=(2, 300, 1))
    system[13:] = baseline[13:]
    exact = randomization_p_value(system, baseline, sum_of, 2**13)
    drawn = randomization_p_value(system, baseline, sum_of, 2**13 - 1)
    assert drawn != exact
    deviation = math.sqrt(exact * (1 - exact) / 2**13)
    assert drawn == pytest.approx(exact, abs=4 * deviation + 2**-12)
    # By other draws it is another one.
    assert drawn != randomization_p_value(system, baseline, sum_of, 8_000, 1)


@pytest.mark.parametrize("better", range(8))
def test_where_sentences_count_alike_it_is_the_sign_test(better):
    number = 14
    system = column([1] * better + [0] * (number - better) + [3] * 40)
    baseline = column([0] * better + [1] * (number - better) + [3] * 40)
    tail = sum(math.comb(number, i) for i in range(better + 1))
    expected = min(1, 2 * tail / 2**number)
    for trials in (2**number, 4_000):
        assert randomization_p_value(
            system, baseline, sum_of, trials
        ) == pytest.approx(expected, abs=0 if trials == 2**number else 0.03)


def test_equal_systems_seldom_have_small_p_values():
    """Few sentences differ, so that ties are frequent."""
    draw = np.random.default_rng(8)
    found = []
    for _ in range(400):
        counts = draw.integers(0, 2, (2, 20, 1)).astype("float64")
        found.append(randomization_p_value(*counts, sum_of, 300))
    for limit in (0.05, 0.1, 0.3):
        share = np.mean(np.array(found) <= limit)
        deviation = math.sqrt(limit * (1 - limit) / len(found))
        assert limit / 5 < share < limit + 2 * deviation


def test_few_changed_sentences_have_no_small_p_value():
    references = [f"a b c d e f {number}" for number in range(500)]
    for number, expected in ((0, 1), (1, 1), (5, 2 / 2**5)):
        system = [
            line.replace("c", "x") if row < number else line
            for row, line in enumerate(references)
        ]
        for metric, found in compare_systems(
            system, references, references
        ).items():
            assert found.randomization_p_value == expected, metric
            assert found.bootstrap_p_value >= min(expected, 0.01), metric


def test_a_single_sentence_cannot_differ():
    for found in compare_systems(
        ["a b c x e"], ["a y c x e"], ["a b c d e"]
    ).values():
        assert abs(found.difference) > 1
        assert found.bootstrap_p_value == found.randomization_p_value == 1


def test_differences_that_rounding_makes_unequal_are_ties():
    values = [0.1, 0.2, 0.3, 0.7, 1 / 3]
    for order in itertools.permutations(values):
        system, baseline = column(order), column([0] * len(order))
        assert randomization_p_value(system, baseline, sum_of) == 2 / 2**5


@pytest.mark.parametrize("metric", [BLEU(tokenize="none", force=True), CHRF()])
def test_without_ties_both_tests_are_those_of_sacrebleu(metric):
    draw = np.random.default_rng(2)
    references = [
        " ".join(draw.choice(list("abcdefgh"), 12)) for _ in range(70)
    ]
    sides = [
        [
            " ".join("x" if draw.random() < rate else w for w in line.split())
            for line in references
        ]
        for rate in (0.3, 0.34)
    ]
    name = "bleu" if isinstance(metric, BLEU) else "chrf"
    # More than a chunk of draws.
    found = compare_systems(
        *sides,
        references,
        [name],
        "none",
        num_resamples=1_100,
        num_trials=1_100,
    )[name]
    expected = []
    for test in ("bs", "ar"):
        signature, results = PairedTest(
            [("baseline", sides[1]), ("system", sides[0])],
            {"metric": metric},
            [references],
            test_type=test,
            n_samples=1_100,
        )()
        (of_metric,) = signature
        expected.append(results[of_metric][1].p_value)
    assert found.bootstrap_p_value == pytest.approx(expected[0])
    assert found.randomization_p_value == pytest.approx(expected[1])
    assert 0.001 < min(expected)


def test_another_seed_makes_other_draws():
    draw = np.random.default_rng(3)
    counts = draw.normal(size=(2, 40, 1))
    for test in (bootstrap_p_value, randomization_p_value):
        assert test(*counts, sum_of) == test(*counts, sum_of)
        assert test(*counts, sum_of, seed=1) != test(*counts, sum_of)


def test_no_p_value_is_printed_as_zero():
    values = [*np.logspace(-320, 0, 200), 0.0, 1 / 10_001, 0.0001, 0.00004]
    for value in values:
        text = format_p_value(value)
        assert text.startswith("< ") == (value < 0.0001)
        assert float(text.removeprefix("< ")) > 0
        assert format_p_value(value, "p") in (f"p {text}", f"p = {text}")
    assert format_p_value(0.03125, "p") == "p = 0.0312"
    assert format_p_value(0.03125, "p", 2) == "p = 0.03"
    assert format_p_value(0.00999, decimals=2) == "< 0.01"
