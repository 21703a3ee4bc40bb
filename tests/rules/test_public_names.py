"""Adding or removing a public name is one line in a review.

To accept a change:
`python tests/rules/package_tree.py > tests/rules/public_names.txt`.
"""

from pathlib import Path

from package_tree import public_names


def test_public_names_are_the_committed_ones():
    committed = Path(__file__).with_name("public_names.txt").read_text()
    promised, found = set(committed.split()), set(public_names())
    assert sorted(promised - found) == [], "names that are gone"
    assert sorted(found - promised) == [], "names that are new"
