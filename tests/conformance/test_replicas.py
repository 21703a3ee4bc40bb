"""Two replicas make the update that one device makes on the joint batch."""

import json
from pathlib import Path

import pytest
from catalog import identify
from forked_processes import run_forked
from shared_models import entry_named
from two_replicas import MODELS

pytestmark = pytest.mark.thorough


def run_on_two_replicas(which):
    script = Path(__file__).with_name("two_replicas.py")
    result = run_forked([script, which], timeout=500)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def measured():
    return run_on_two_replicas("thorough")


@pytest.fixture(scope="module")
def measured_slowly():
    return run_on_two_replicas("slow")


def check(found):
    assert found["moved"] > 1e-3
    assert found["weights"] < 1e-6
    assert found["loss"] < 1e-5


def named(names):
    return [entry_named(name) for name in names]


@pytest.mark.parametrize("entry", named(MODELS["thorough"]), ids=identify)
def test_two_replicas_update_as_one_device(measured, entry):
    check(measured["models"][entry.name])


# Slow: the toys above fill the same slots.
@pytest.mark.slow
@pytest.mark.parametrize("entry", named(MODELS["slow"]), ids=identify)
def test_two_replicas_update_filled_slots_as_one_device(measured_slowly, entry):
    check(measured_slowly["models"][entry.name])


def test_an_overflow_on_one_replica_skips_the_update_on_all(measured):
    found = measured["float16"]
    assert found["skipped"] and found["learned"] and found["equal"]
    batches, updates = found["updates"]
    assert batches == 12 and 0 < updates < 12


def test_replicas_share_the_rows_of_a_search(measured):
    assert measured["searches"] == [True] * 4


def test_replicas_drop_different_activations_and_a_checkpoint_keeps_them(
    measured,
):
    (first, second), again = measured["masks"]
    assert first != second
    assert again == [first, second]


def test_replicas_with_recomputed_blocks_make_the_same_updates(measured):
    assert measured["recomputed"] < 1e-6
