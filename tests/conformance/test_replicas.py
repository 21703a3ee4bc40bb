"""Two replicas make the update that one device makes on the joint batch."""

import json
from pathlib import Path

import pytest
from forked_processes import run_forked
from two_replicas import MODELS

pytestmark = pytest.mark.thorough

# Toys fill the same slots in less time.
SLOW = ("every slot", "dense, summaries, other widths, every slot")


def on_two_replicas(part):
    """What a program measures that is made for this part alone."""
    script = Path(__file__).with_name("two_replicas.py")
    result = run_forked([script, part], timeout=500)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def check_update(name):
    found = on_two_replicas(name)
    assert found["moved"] > 1e-3
    assert found["weights"] < 1e-6
    assert found["loss"] < 1e-5


@pytest.mark.parametrize("name", [name for name in MODELS if name not in SLOW])
def test_two_replicas_update_as_one_device(name):
    check_update(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_two_replicas_update_filled_slots_as_one_device(name):
    check_update(name)


def test_an_overflow_on_one_replica_skips_the_update_on_all():
    found = on_two_replicas("float16")
    assert found["skipped"] and found["learned"] and found["equal"]
    batches, updates = found["updates"]
    assert batches == 12 and 0 < updates < 12


def test_replicas_share_the_rows_of_a_search():
    assert on_two_replicas("searches") == [True] * 4


def test_replicas_drop_different_activations_and_a_checkpoint_keeps_them():
    (first, second), again = on_two_replicas("masks")
    assert first != second
    assert again == [first, second]


def test_replicas_with_recomputed_blocks_make_the_same_updates():
    assert on_two_replicas("recomputed") < 1e-6
