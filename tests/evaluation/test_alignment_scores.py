"""The error rate of word alignments, and their format.

Och and Ney (2003), Section 6: 1 - (|A and S| + |A and P|) / (|A| + |S|).
"""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    alignment_error_rate,
    format_alignment,
    parse_alignment,
)

SURE = [{(0, 0), (1, 1)}, {(0, 1)}]
POSSIBLE = [{(1, 2)}, set()]


def test_the_gold_links_have_no_error():
    assert alignment_error_rate(SURE, SURE) == 0
    assert alignment_error_rate(SURE, SURE, POSSIBLE) == 0


def test_a_worked_example():
    # 4 links found, of which 2 are sure and 3 at least possible; 3 sure ones.
    found = [[(0, 0), (1, 1), (1, 2)], [(0, 0)]]
    expected = 1 - (2 + 3) / (4 + 3)
    assert alignment_error_rate(found, SURE, POSSIBLE) == pytest.approx(
        expected
    )


def test_possible_links_are_no_errors_and_not_required():
    with_possible = [[*SURE[0], (1, 2)], SURE[1]]
    assert alignment_error_rate(with_possible, SURE, POSSIBLE) == 0
    assert alignment_error_rate(with_possible, SURE) > 0


def test_no_link_found_is_the_largest_error():
    assert alignment_error_rate([[], []], SURE) == 1


def test_text_and_back():
    sure, possible = parse_alignment("0-0 12?3\n")
    assert (sure, possible) == ({(0, 0)}, {(12, 3)})
    links = [(0, 0), (1, 2)]
    assert parse_alignment(format_alignment(links)) == (set(links), set())
    assert parse_alignment("") == (set(), set())
    with pytest.raises(UserError, match="Received: '1:2'"):
        parse_alignment("0-0 1:2")


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="of the same sentences"):
        alignment_error_rate([[]], SURE)
    with pytest.raises(ValueError, match="at least one link"):
        alignment_error_rate([[]], [[]])
