"""What must be true of tests between two systems.

* the sign test counts what recomputing BLEU for each replaced sentence counts
* its p-value is that of Conover's textbook example
* equal systems do not differ, and clearly different ones do, by both tests
* a difference has the same size and p-value the other way round
* the bootstrap's p-value is about half of the other one, and below 0.45
* an empty line is not a reference, whatever its set
"""

import random

import pytest
from sacrebleu.metrics import BLEU

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import compare_systems, sign_test


def sentences(number, seed):
    generator = random.Random(seed)
    return [
        " ".join(generator.choices("abcdefgh", k=generator.randint(5, 12)))
        for _ in range(number)
    ]


def with_errors(lines, rate, seed):
    generator = random.Random(seed)
    return [
        " ".join(
            "x" if generator.random() < rate else word for word in line.split()
        )
        for line in lines
    ]


REFERENCES = sentences(60, 1)
GOOD = with_errors(REFERENCES, 0.1, 2)
BAD = with_errors(REFERENCES, 0.4, 3)
CLOSE = with_errors(REFERENCES, 0.12, 4)


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_sign_test_counts_replacements_that_raise_or_lower_bleu(tokenize):
    metric = BLEU(tokenize=tokenize, force=True)

    def bleu(lines):
        return metric.corpus_score(lines, [REFERENCES]).score

    whole = bleu(CLOSE)
    changes = [
        bleu([*CLOSE[:i], GOOD[i], *CLOSE[i + 1 :]]) - whole
        for i in range(len(CLOSE))
    ]
    result = sign_test(GOOD, CLOSE, REFERENCES, tokenize)
    assert result.better == sum(change > 1e-9 for change in changes)
    assert result.worse == sum(change < -1e-9 for change in changes)
    assert result.better and result.worse and result.equal
    assert result.better + result.worse + result.equal == len(REFERENCES)


def test_sign_test_has_the_p_value_of_a_textbook_example():
    # Conover, Practical Nonparametric Statistics: 8 of 10 deer.
    references = [f"{letter} b c d e f" for letter in "abcdefghij"]
    wrong = [f"{letter} b c x e f" for letter in "abcdefghij"]
    system = references[:8] + wrong[8:]
    baseline = wrong[:8] + references[8:]
    result = sign_test(system, baseline, references)
    assert (result.better, result.worse, result.equal) == (8, 2, 0)
    assert result.p_value == pytest.approx(0.109375)
    # The other way round it is the same.
    other = sign_test(baseline, system, references)
    assert (other.better, other.worse) == (2, 8)
    assert other.p_value == result.p_value


def test_equal_systems_do_not_differ():
    result = sign_test(GOOD, GOOD, REFERENCES)
    assert (result.equal, result.p_value) == (len(REFERENCES), 1.0)
    for comparison in compare_systems(
        GOOD, GOOD, REFERENCES, num_resamples=50, num_trials=50
    ).values():
        assert comparison.difference == 0.0
        assert comparison.bootstrap_p_value == 1.0
        assert comparison.randomization_p_value == 1.0


def test_clearly_different_systems_have_the_smallest_p_value():
    comparisons = compare_systems(
        GOOD, BAD, REFERENCES, num_resamples=99, num_trials=199
    )
    assert list(comparisons) == ["bleu", "chrf", "ter"]
    for name, comparison in comparisons.items():
        # TER counts errors.
        assert (comparison.difference < 0) == (name == "ter")
        assert comparison.bootstrap_p_value == pytest.approx(1 / 100)
        assert comparison.randomization_p_value == pytest.approx(1 / 200)
    assert sign_test(GOOD, BAD, REFERENCES).p_value < 0.01


def test_a_difference_is_the_same_the_other_way_round():
    options = {"metrics": ["bleu"], "num_resamples": 300, "num_trials": 300}
    one = compare_systems(GOOD, CLOSE, REFERENCES, **options)["bleu"]
    other = compare_systems(CLOSE, GOOD, REFERENCES, **options)["bleu"]
    assert one.difference == pytest.approx(-other.difference)
    assert 0.01 < one.bootstrap_p_value < 1
    assert one.bootstrap_p_value == pytest.approx(other.bootstrap_p_value)
    assert one.randomization_p_value == pytest.approx(
        other.randomization_p_value
    )


def test_the_bootstrap_p_value_is_about_that_of_one_direction():
    """As the docstring says; otherwise it has to change with sacreBLEU."""
    references = sentences(400, 5)
    plain, equal, better = (
        with_errors(references, rate, seed)
        for rate, seed in ((0.2, 6), (0.2, 8), (0.18, 8))
    )
    options = {"metrics": ["bleu"], "num_trials": 2_000}
    same, larger = (
        compare_systems(system, plain, references, **options)["bleu"]
        for system in (equal, better)
    )
    assert 0.01 < larger.randomization_p_value < 0.1
    ratio = larger.bootstrap_p_value / larger.randomization_p_value
    assert 0.3 < ratio < 0.7
    assert same.randomization_p_value > 0.7
    assert same.bootstrap_p_value < 0.45


@pytest.mark.parametrize("test", [compare_systems, sign_test])
def test_an_empty_line_is_no_reference(test):
    options = {"num_resamples": 20, "num_trials": 20}
    if test is sign_test:
        options = {}
    empty = [""] * len(REFERENCES)
    # One of each sentence's two lines is empty, by turns.
    sets = [
        [(line, "")[(row + number) % 2] for row, line in enumerate(REFERENCES)]
        for number in (0, 1)
    ]
    # So short that the empty line would be the one of the closest length.
    short = [" ".join(line.split()[:2]) for line in GOOD]
    alone = test(short, CLOSE, REFERENCES, **options)
    for first, second in ((REFERENCES, empty), (empty, REFERENCES), sets):
        assert alone == test(
            *(short, CLOSE, first), **options, more_references=[second]
        )


@pytest.mark.parametrize("test", [compare_systems, sign_test])
def test_refuses_unequal_lengths_and_unknown_tokenizers(test):
    with pytest.raises(ValueError, match="60 system, 59 baseline, 60 ref"):
        test(GOOD, CLOSE[1:], REFERENCES)
    with pytest.raises(UserError, match="`tokenize` must be one of"):
        test(GOOD, CLOSE, REFERENCES, tokenize="words")
