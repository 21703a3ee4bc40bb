"""A search on two replicas finds what it finds on one device."""

from pathlib import Path

import pytest
from backend_program import BACKENDS, found_by

PROGRAM = str(Path(__file__).with_name("replicated_search.py"))


@pytest.mark.thorough
@pytest.mark.parametrize("strategy, backend", BACKENDS)
def test_two_replicas_find_the_same_with_one_compilation(strategy, backend):
    found = found_by(PROGRAM, strategy, backend)
    assert found["ids_differ"] == 0
    assert found["differ_with_candidates"] == 0
    assert found["largest_difference"] < 1e-5
    assert found["scores_differ"] < 1e-5
    # One for both length penalties.
    assert found["compilations"] == [1, 1]
