"""Searches on JAX pass the same tests, in another process."""

import functools
import os
from pathlib import Path

import pytest
from forked_processes import run_forked

FOLDER = Path(__file__).parent
FILES = (
    "../translator/test_batches_at_once",
    "test_beam_search",
    "test_candidate_tokens",
    "test_required_phrases",
    "test_coverage_penalty",
    "test_diverse_beam_search",
    "test_ensemble",
    "test_length_limits",
    "test_next_tokens",
    "test_own_max_lengths",
    "test_patience",
    "test_prefixes",
    "test_prepared_projection",
    "test_sampling",
    "test_scoring_memory",
    "test_staged_search",
)
# What a search is, in a few tests; the others are thorough.
CENTRE = (
    "(test_beam_search and (brute_force or teacher_forcing or change_later)) "
    "or (test_staged_search and little_room)"
)
CORE = (
    "brute_force or greedy or teacher_forcing or change_later or marked "
    "or all_positions or loops or at_once_are "
    "or (own_projection and transformer) "
    "or little_room"
)


@pytest.fixture
def run_on_jax(pytestconfig):
    """Runs tests in the order of this run, which its seed makes."""
    pytest.importorskip("jax")
    if pytestconfig.pluginmanager.hasplugin("randomly"):
        order = f"--randomly-seed={pytestconfig.option.randomly_seed}"
    else:
        order = "-pno:randomly"
    return functools.partial(run, order, "-n0")


def run(*arguments):
    finished = run_forked(
        ["-m", "pytest", "-q", *arguments],
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert " passed" in finished.stdout


@pytest.mark.thorough
def test_centre_of_the_searches_on_jax(run_on_jax):
    files = (FOLDER / "test_beam_search.py", FOLDER / "test_staged_search.py")
    run_on_jax("-m", "not slow", "--cases=1", "-k", CENTRE, *files)


@pytest.mark.thorough
def test_core_of_the_searches_on_jax(run_on_jax):
    # Each case is a program, and TensorFlow has all of them: one of each test.
    files = (FOLDER / f"{name}.py" for name in FILES)
    run_on_jax("-m", "not slow", "--cases=1", "-k", CORE, *files)


@pytest.mark.thorough
def test_minimum_risk_training_on_jax(run_on_jax):
    """Samples are drawn in the compiled step, from shapes that are known."""
    file = FOLDER.parent / "training" / "test_minimum_risk.py"
    run_on_jax("-m", "thorough", "-k", "gradient or lowers", file)


# Slow, since the tests above have brute force, too, for fewer models.
@pytest.mark.slow
def test_exact_searches_on_jax(run_on_jax):
    run_on_jax("-m", "thorough", FOLDER / "test_exact_search.py")
