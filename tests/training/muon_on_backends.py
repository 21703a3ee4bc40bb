"""Trains with Muon, at once and from a checkpoint; prints the weights.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.training import CheckpointStore, Muon, make_strategy

NUM_REPLICAS = 2
INPUTS = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
LABELS = np.random.default_rng(2).normal(size=(4, 2)).astype("float32")


def make_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    model.compile(
        Muon(0.3),
        loss="mean_squared_error",
        jit_compile=keras.config.backend() == "jax",
    )
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, updates):
    model.fit(
        INPUTS,
        LABELS,
        batch_size=len(INPUTS),
        epochs=updates,
        shuffle=False,
        verbose=0,
    )
    return [weight.tolist() for weight in model.get_weights()]


def main(kind):
    replicas = NUM_REPLICAS if kind == "mirrored" else None
    strategy = make_strategy(kind, replicas)
    store = CheckpointStore(Path(tempfile.mkdtemp()) / "checkpoints")
    with strategy.scope():
        model, again = make_model(), make_model()
    found = {"saved": train(model, 2)}
    store.save(model, 2)
    found["last"] = train(model, 2)
    store.restore(again)
    found["resumed"] = train(again, 2)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
