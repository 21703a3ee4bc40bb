"""Averages the weights while it trains; prints how far from NumPy it is.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start.
"""

import json
import sys
import tempfile

import keras
import numpy as np

from keras_deepnmt.training import (
    Adam,
    CheckpointStore,
    ValidateAverage,
    averaged_weights,
    make_strategy,
)

MOMENTUM, UPDATES = 0.3, 7


class Watch(keras.callbacks.Callback):
    """Keeps the raw weights after each update."""

    def __init__(self):
        super().__init__()
        self.raw = []

    def on_train_batch_end(self, batch, logs=None):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.raw.append(self.model.get_weights())


def make_model(momentum=MOMENTUM):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.layers.Input((5,)),
            keras.layers.Dense(3, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )
    on_jax = keras.config.backend() == "jax"
    rule = Adam(0.05, average_momentum=momentum)
    model.compile(rule, "mse", jit_compile=on_jax)
    model.optimizer.build(model.trainable_variables)
    return model


def batch():
    random = np.random.default_rng(0)
    return random.normal(size=(4, 5)), random.normal(size=(4, 1))


def fit(model, updates, *callbacks):
    return model.fit(
        *batch(),
        batch_size=4,
        epochs=updates,
        shuffle=False,
        validation_data=batch(),
        callbacks=list(callbacks),
        verbose=0,
    ).history["val_loss"]


def reference(raw):
    """The averages after each update."""
    average, found = [0.0] * len(raw[0]), []
    for n, weights in enumerate(raw, start=1):
        share = min(MOMENTUM, (n - 1) / (n + 8))
        average = [
            share * old + (1 - share) * new
            for old, new in zip(average, weights, strict=True)
        ]
        found.append(average)
    return found


def difference(one, other):
    pairs = zip(one, other, strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def main(kind):
    strategy = make_strategy(kind, 2 if kind == "mirrored" else None)
    store = CheckpointStore(tempfile.mkdtemp())
    found = {}
    with strategy.scope():
        model, plain, watch = make_model(), make_model(None), Watch()
        losses = fit(model, UPDATES, ValidateAverage(), watch)
        fit(plain, UPDATES)
        expected = reference(watch.raw)
        found["raw"] = difference(model.get_weights(), plain.get_weights())
        with averaged_weights(model):
            averaged = model.get_weights()
        found["averages"] = difference(averaged, expected[-1])
        found["distance"] = difference(averaged, model.get_weights())
        found["raw after"] = difference(model.get_weights(), watch.raw[-1])
        store.save(model, UPDATES)
        again = make_model()
        store.restore(again)
        for one in (model, again):
            losses += fit(one, 1, ValidateAverage(), watch)
        found["resumed"] = difference(model.get_weights(), again.get_weights())
        found["resumed loss"] = abs(losses[-1] - losses[-2])
        for variable, value in zip(
            plain.trainable_variables, expected[2], strict=True
        ):
            variable.assign(value)
        loss = plain.evaluate(*batch(), batch_size=4, verbose=0)
    found["validation"] = abs(losses[2] - loss)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
