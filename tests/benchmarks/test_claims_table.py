"""The verdicts of the table of the papers' claims."""

import pytest

from benchmarks.tables import claims_tables
from benchmarks.tables.claims_tables import (
    CONTRADICTED,
    NOT_SHOWN,
    ONE_SEED,
    SHOWN,
)


@pytest.mark.parametrize(
    "differences, verdict",
    [
        # Student's interval of three values with deviation 0.1: ± 0.25.
        ((0.9, 1.0, 1.1), SHOWN),
        ((-1.1, -1.0, -0.9), CONTRADICTED),
        ((0.1, 0.2, 0.3), NOT_SHOWN),
        ((-0.3, -0.2, -0.1), NOT_SHOWN),
        # However large: seeds differ by more than one can know from one.
        ((5.0,), ONE_SEED),
        ((-5.0,), ONE_SEED),
    ],
)
def test_a_verdict_says_no_more_than_the_interval(differences, verdict):
    text, seeds, found = claims_tables._with_verdict(differences)
    assert found == verdict
    assert seeds == len(differences)
    assert ("±" in text) is (seeds > 1)


def test_every_claim_has_the_paper_s_name_and_rows():
    table, _ = claims_tables.claims_table()
    lines = table.splitlines()[2:]
    assert len(lines) > 30
    for line in lines:
        paper, claim, *_, seeds, verdict = line.strip("| ").split(" | ")
        assert ", 20" in paper and claim and int(seeds) > 0
        assert verdict.startswith((SHOWN, NOT_SHOWN, CONTRADICTED, ONE_SEED))
