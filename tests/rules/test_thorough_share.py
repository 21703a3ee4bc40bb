"""The share of thorough tests that `.ci/run` runs is drawn by the seed.

Each commit has a seed of its own, so that every thorough test is run in the
course of some commits; those marked for each commit always are.
"""

from types import SimpleNamespace

import pytest
from package_tree import REPOSITORY


class Item:
    """What pytest knows of a test, as far as it is asked here."""

    def __init__(self, number, **options):
        self.nodeid = f"tests/test_a.py::test_{number}"
        self._marks = {"thorough": pytest.mark.thorough(**options).mark}

    def get_closest_marker(self, name):
        return self._marks.get(name)

    def add_marker(self, decorator):
        self._marks[decorator.name] = decorator.mark


def run_by(pytestconfig, share, seed):
    """The numbers of 1,000 tests that run; of them 10 run in each commit."""
    items = [Item(n, each_commit=n < 10) for n in range(1_000)]
    return run_of(pytestconfig, items, share, seed)


def run_of(pytestconfig, items, share, seed, cases=None):
    conftest = pytestconfig.pluginmanager.get_plugin(
        str(REPOSITORY / "tests" / "conftest.py")
    )
    options = {
        "--thorough-share": share,
        "--thorough-cases": cases,
        "randomly_seed": seed,
    }
    config = SimpleNamespace(getoption=lambda name, *_: options.get(name))
    conftest._skip_thorough_cases(config, items)
    return {
        n for n, item in enumerate(items) if not item.get_closest_marker("skip")
    }


def test_a_share_is_drawn_and_some_tests_always_run(pytestconfig):
    drawn = run_by(pytestconfig, 0.2, seed=1)
    assert 150 < len(drawn) < 270
    assert drawn >= set(range(10))
    assert drawn == run_by(pytestconfig, 0.2, seed=1)


def test_other_commits_run_other_tests_and_in_the_end_all(pytestconfig):
    runs = [run_by(pytestconfig, 0.2, seed) for seed in range(60)]
    assert runs[0] != runs[1]
    assert set.union(*runs) == set(range(1_000))


def test_only_of_the_others_a_number_of_cases_is_taken(pytestconfig):
    for each_commit, expected in ((True, 9), (False, 4)):
        items = [Item(0, each_commit=each_commit) for _ in range(9)]
        for n, item in enumerate(items):
            item.nodeid += f"[{n}]"
        ran = run_of(pytestconfig, items, share=1.0, seed=1, cases=4)
        assert ran == set(range(expected))


def test_a_share_of_one_is_all(pytestconfig):
    assert run_by(pytestconfig, 1.0, seed=1) == set(range(1_000))
