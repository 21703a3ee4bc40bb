"""Checks that replicas on this machine train as one device does."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Transformer
from keras_deepnmt.processes import run_python
from keras_deepnmt.training.callbacks import CheckpointCallback
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.schedules import InverseSquareRoot
from keras_deepnmt.training.strategies import make_strategy

STEPS = 20
LIMIT = 1e-6
_KILLED_AT = 13
_CHECKPOINT_EVERY = 5
_VOCABULARY_SIZE = 23
_RATES = {
    "SGD": 0.1,
    # Warmed up, as in every recipe: Adam's first update moves each weight by
    # the whole rate, and a gradient of nearly zero by its rounding error.
    "Adam": InverseSquareRoot(1e-3, warmup_steps=10),
}


@dataclass(frozen=True)
class ProofRow:
    """The result of one training configuration, compared with one device.

    Attributes:
        name: the configuration.
        optimizer: `"SGD"` or `"Adam"`.
        difference: largest absolute difference of a weight after the last
            update.
        limit: largest allowed difference, or `None` if it is only shown.
        seconds: wall time, compilation included.
    """

    name: str
    optimizer: str
    difference: float
    limit: float | None
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the difference is within its limit."""
        return self.limit is None or self.difference <= self.limit


def proof_rows(strategy: Any, folder: Path) -> Iterator[ProofRow]:
    """Trains a tiny Transformer in several ways and compares the weights.

    Makes 20 updates without dropout on batches of seven rows of different
    lengths, once on one device without XLA, and then on the replicas: without
    options, with XLA, with accumulated gradients, killed and resumed, and in
    bfloat16. Yields a `ProofRow` for each configuration and optimizer as soon
    as it is done. `folder` gets the checkpoints of the killed process. Raises
    a `UserError` if the strategy has only one replica.

    Example:
    >>> for row in proof_rows(make_strategy("mirrored", 2), Path("proof")):
    ...     print(row.name, row.difference)
    """
    num_replicas = strategy.num_replicas_in_sync
    if num_replicas < 2:
        raise UserError(
            "`replicas` must be at least 2 to be compared with one. "
            f"Received: {num_replicas}"
        )
    one = make_strategy("one_device")
    name = f"{num_replicas} replicas"
    ways: dict[str, dict[str, Any]] = {
        name: {},
        f"{name}, XLA": {"jit_compile": True},
        f"{name}, accumulation": {"gradient_accumulation_steps": 2},
        f"{name}, mixed_bfloat16": {"dtype": "mixed_bfloat16"},
    }
    for optimizer in ("SGD", "Adam"):
        reference = _weights_after(one, optimizer)
        for way, options in ways.items():
            start = time.monotonic()
            weights = _weights_after(strategy, optimizer, **options)
            limit = None if "dtype" in options else LIMIT
            yield _row(way, optimizer, reference, weights, limit, start)
        start = time.monotonic()
        store = CheckpointStore(folder / optimizer)
        _kill_in_the_middle(store.directory, num_replicas, optimizer)
        weights = _weights_after(strategy, optimizer, store=store)
        way = f"{name}, killed and resumed"
        yield _row(way, optimizer, reference, weights, LIMIT, start)


def _row(way, optimizer, reference, weights, limit, start):
    difference = max(
        float(np.abs(one - other).max())
        for one, other in zip(reference, weights, strict=True)
    )
    seconds = time.monotonic() - start
    return ProofRow(way, optimizer, difference, limit, seconds)


def _weights_after(
    strategy, optimizer, *, dtype="float32", store=None, callbacks=(), **options
):
    """Trains from the last checkpoint or the start, and returns the weights."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = Transformer(
            _VOCABULARY_SIZE,
            _VOCABULARY_SIZE,
            hidden_dim=32,
            intermediate_dim=64,
            num_heads=4,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dropout=0.0,
            dtype=dtype,
        )
        rule = getattr(keras.optimizers, optimizer)(_RATES[optimizer])
        model.compile(rule, **{"jit_compile": False, **options})
        start = (store and store.restore(model)) or 0
        model.fit(_Batches(start), verbose=0, callbacks=list(callbacks))
    return model.get_weights()


class _Batches:
    """The batches from a step on; each is a function of its step."""

    def __init__(self, start):
        self.start = start

    def __len__(self):
        return STEPS - self.start

    def __iter__(self):
        return map(_batch, range(self.start, STEPS))


def _batch(step):
    """Seven rows of different lengths."""
    random = np.random.default_rng(step)
    source, labels = (_random_ids(random, length) for length in (11, 13))
    target = np.roll(labels, 1, axis=1)
    target[:, 0] = 2
    return {"source_ids": source, "target_ids": target}, labels


def _random_ids(random, length):
    ids = random.integers(4, _VOCABULARY_SIZE, (7, length), "int32")
    lengths = random.integers(2, length + 1, (7, 1))
    return np.where(np.arange(length) < lengths, ids, 0).astype("int32")


def _kill_in_the_middle(directory, num_replicas, optimizer):
    """Trains in another process until it kills itself, as `kill -9` does."""
    arguments = (str(directory), num_replicas, optimizer)
    result = run_python(
        [
            "-c",
            f"from {__name__} import train_until_killed\n"
            f"train_until_killed{arguments}",
        ]
    )
    if result.returncode != -signal.SIGKILL:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(
            "the process that was to be killed ended by itself, with exit "
            f"code {result.returncode}: {lines[-1]}"
        )


def train_until_killed(directory: str, num_replicas: int, optimizer: str):
    """Trains with checkpoints, and kills its own process after 13 updates."""
    strategy = make_strategy("mirrored", num_replicas)
    store = CheckpointStore(directory)
    saving = CheckpointCallback(store, _CHECKPOINT_EVERY, STEPS)
    _weights_after(strategy, optimizer, callbacks=[saving, _Kill()])


class _Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == _KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)
