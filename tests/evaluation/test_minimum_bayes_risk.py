"""What must be true of the choice with the smallest expected loss.

* it is the candidate whose mean score against all others is highest
* repeated samples count as often as they were drawn
* probabilities of an n-best list weigh its candidates
"""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from keras_deepnmt.evaluation import minimum_bayes_risk

CANDIDATES = [
    "the small dog sleeps in the garden",
    "a little dog is sleeping in the garden",
    "the small dog is sleeping in the garden",
    "cats sleep in a house",
]


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_expected_score_is_the_highest(utility, weighted):
    log_probs = [-1.0, -0.5, -3.0, -2.5] if weighted else None
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    expected = []
    for candidate in CANDIDATES:
        total = 0.0
        for place, reference in enumerate(CANDIDATES):
            weight = np.exp(log_probs[place]) if weighted else 1.0
            score = metric.sentence_score(candidate, [reference]).score
            total += weight * score
        expected.append(total)
    chosen = minimum_bayes_risk(CANDIDATES, log_probs, utility)
    assert chosen == int(np.argmax(expected))


def test_a_candidate_that_is_drawn_often_is_chosen():
    assert minimum_bayes_risk(CANDIDATES) != 3
    drawn = [*CANDIDATES, *[CANDIDATES[3]] * 9]
    assert minimum_bayes_risk(drawn) == 3


def test_a_certain_candidate_is_chosen():
    assert minimum_bayes_risk(CANDIDATES, [-900.0, -900.0, -900.0, 0.0]) == 3


def test_one_candidate_and_empty_ones():
    assert minimum_bayes_risk(["a"]) == 0
    assert minimum_bayes_risk(["", ""]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one translation"),
        ((["a"], [0.0, 1.0]), "2 numbers for 1 candidates"),
        ((["a"], None, "ter"), "`utility` must be one of"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimum_bayes_risk(*arguments)
