"""Which strategy is made, and which process of several writes."""

import json
import types
from pathlib import Path

import pytest
from backend_program import found_by

from keras_deepnmt.errors import UserError
from keras_deepnmt.training.strategies import Workers, make_strategy

TWO_WORKERS = {"worker": ["a:1", "b:1"]}
WITH_A_CHIEF = {"chief": ["a:1"], "worker": ["b:1"]}


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        "{",
        {"task": {"type": "worker", "index": 0}},
        {"cluster": TWO_WORKERS},
        {"cluster": TWO_WORKERS, "task": {"type": "worker", "index": 2}},
        {"cluster": TWO_WORKERS, "task": {"type": "chief", "index": 0}},
        {
            "cluster": {**TWO_WORKERS, "ps": ["c:1"]},
            "task": {"type": "worker", "index": 0},
        },
    ],
)
def test_a_cluster_that_is_not_one_is_refused(config, monkeypatch):
    text = config if isinstance(config, str | None) else json.dumps(config)
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match="TF_CONFIG") as info:
        make_strategy("multi_worker")
    assert f"Received: TF_CONFIG={text!r}" in str(info.value)


def test_the_number_of_replicas_of_a_cluster_is_not_ours_to_choose():
    with pytest.raises(UserError, match="Received: replicas=3"):
        make_strategy("multi_worker", 3)


@pytest.mark.parametrize("kind", ["mirrored", "multi_worker"])
def test_no_replica_at_all_is_refused(kind):
    with pytest.raises(UserError, match="Received: num_replicas=0"):
        make_strategy(kind, 0)


@pytest.mark.parametrize(
    "cluster, kind, index, is_chief",
    [
        (TWO_WORKERS, "worker", 0, True),
        (TWO_WORKERS, "worker", 1, False),
        (WITH_A_CHIEF, "chief", 0, True),
        (WITH_A_CHIEF, "worker", 0, False),
    ],
)
def test_one_process_of_a_cluster_is_the_chief(cluster, kind, index, is_chief):
    spec = types.SimpleNamespace(as_dict=lambda: cluster)
    resolver = types.SimpleNamespace(
        cluster_spec=lambda: spec, task_type=kind, task_id=index
    )
    strategy = types.SimpleNamespace(cluster_resolver=resolver)
    assert Workers(strategy).is_chief == is_chief


def test_a_process_alone_is_the_chief_and_waits_for_nobody():
    workers = Workers(make_strategy("one_device"))
    assert workers.is_chief
    workers.barrier()
    assert workers.broadcast(7) == 7
    workers.leave()


def workers_of_whom_others_end(monkeypatch, all_reduces):
    """Workers whose all-reduces fail after the first `all_reduces`."""
    import tensorflow as tf

    workers = Workers(make_strategy("one_device"))
    workers.is_distributed = True
    ends = iter([0] * all_reduces)

    def all_reduce_sum(value):
        for total in ends:
            return total
        raise tf.errors.UnavailableError(None, None, "Connection reset")

    monkeypatch.setattr(workers, "all_reduce_sum", all_reduce_sum)
    return workers


def test_the_last_process_to_leave_does_not_need_the_others(monkeypatch):
    workers_of_whom_others_end(monkeypatch, all_reduces=1).leave()
    with pytest.raises(UserError, match="another worker process"):
        workers_of_whom_others_end(monkeypatch, 0).leave()


@pytest.mark.thorough
def test_devices_of_a_small_processor_do_not_wait_for_ever(monkeypatch):
    # XLA takes it for a processor of two cores.
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.setenv("NPROC", "2")
    script = Path(__file__).with_name("all_reduces_on_jax.py")
    assert found_by(script, "mirrored", "jax") == {"devices": 2, "finite": True}
