"""What must be true of the timed parts of an update."""

import numpy as np
import pytest

from benchmarks.speed import update_parts

SIZES = dict(
    hidden_dim=8,
    intermediate_dim=16,
    num_heads=2,
    num_layers=1,
    vocabulary_size=50,
    batch_size=4,
    length=6,
)


@pytest.fixture
def parts(monkeypatch):
    """Returns the timed functions and the weights of their model."""
    models = []
    make = update_parts.make_transformer

    def make_and_keep(sizes):
        models.append(make(sizes))
        return models[-1]

    monkeypatch.setattr(update_parts, "make_transformer", make_and_keep)
    functions = update_parts.functions_of_parts(SIZES, "adam")
    return functions, models[0].get_weights


@pytest.mark.parametrize(
    ("part", "changes_weights"),
    [
        ("gradients", False),
        ("optimizer", True),
        ("update", True),
        ("empty", False),
    ],
)
def test_only_the_optimizer_and_the_whole_update_change_weights(
    parts, part, changes_weights
):
    functions, weights = parts
    before = weights()
    functions[part]()
    changed = any(
        not np.array_equal(a, b) for a, b in zip(before, weights(), strict=True)
    )
    assert changed == changes_weights


def test_the_time_of_python_is_that_of_one_update(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(
        update_parts.time, "perf_counter", lambda: float(next(clock))
    )
    found = update_parts.milliseconds_of_parts(
        {"update": lambda: None, "empty": lambda: None}, rounds=3
    )
    assert found == {
        "update": 1000.0,
        "empty": 1000.0 / update_parts.EMPTY_UPDATES,
    }
