"""What must be true of maximum lengths that sentences have of their own.

* a large beam finds what brute force finds among outputs of that length
* greedy search and samples end there, and are marked
* 0 leaves the limit to the options; a longer one is permitted
* prefixes have room for the end, and padding has no translation
"""

import numpy as np
import pytest
from toy_model import ToyModel, eagerly

from keras_deepnmt.decoding import SearchOptions, search
from keras_deepnmt.decoding.hypotheses import output_limits

SOURCES = np.array(
    [[4, 9, 3, 0, 0], [5, 3, 0, 0, 0], [8, 7, 6, 16, 3], [0, 0, 0, 0, 0]],
    "int32",
)
OWN = np.array([2, 4, 0, 3], "int32")
LONGEST = 4
# The sources' own limits: 3, 2, 3 and 0.
OPTIONS = SearchOptions(max_length_ratio=0.5, max_extra_tokens=1)
LIMITS = [2, 4, 4, 0]


def run(**options):
    return eagerly(
        search,
        ToyModel(scale=1.0),
        SOURCES,
        None,
        None,
        OWN,
        options=OPTIONS.updated(**options),
        max_length=LONGEST,
    )


def lengths(ids):
    return (ids != 0).sum(axis=-1)


def test_own_limits_replace_those_of_the_options():
    limits = output_limits(SOURCES, 9, OPTIONS, None, OWN)
    assert np.asarray(limits).tolist() == LIMITS
    prefixes = np.array([[7, 7, 7], [0] * 3, [0] * 3, [0] * 3], "int32")
    limits = output_limits(SOURCES, 9, OPTIONS, prefixes, OWN)
    assert np.asarray(limits).tolist() == [4, 4, 4, 0]
    # The search itself has no more steps.
    limits = output_limits(SOURCES, 3, OPTIONS, None, OWN)
    assert np.asarray(limits).tolist() == [2, 3, 3, 0]


def test_large_beam_finds_what_brute_force_finds():
    model = ToyModel(scale=1.0)
    outputs = run(num_beams=341)
    for row, source in enumerate(SOURCES[:3]):
        expected = sorted(
            (
                model.reference_log_prob(source, target)
                / ((5 + len(target)) / 6) ** 0.6
                for target in model.all_targets(LIMITS[row])
            ),
            reverse=True,
        )
        scores = outputs["scores"][row]
        np.testing.assert_allclose(
            scores[np.isfinite(scores)], expected, atol=1e-4
        )
        assert lengths(outputs["ids"][row]).max() == LIMITS[row]


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 1},
        {"num_beams": 4},
        {"num_beams": 4, "num_groups": 2},
        {"num_beams": 3, "sampling": True},
        {"num_beams": 3, "min_length": 9},
    ],
    ids=str,
)
def test_no_search_exceeds_them(options):
    outputs = run(**options)
    for row, limit in enumerate(LIMITS):
        found = lengths(outputs["ids"][row])
        assert found.max(initial=0) <= limit
        if options.get("min_length") and limit:
            assert found[0] == limit
    assert not np.isfinite(outputs["scores"][3]).any()
