"""Trains with a rate that a callback lowers; prints the results.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.training import (
    CheckpointStore,
    Constant,
    Nesterov,
    WarmUp,
    make_strategy,
)

NUM_REPLICAS = 2


@keras.saving.register_keras_serializable("rate_on_backends")
def minus_output(labels, outputs):
    return -outputs


class Lower(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.rate_factor.assign(0.25)


def make_model():
    model = keras.Sequential(
        [
            keras.layers.Input((1,)),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    # Without momentum an update moves the weight by the rate itself.
    rule = Nesterov(WarmUp(Constant(0.5), warmup_steps=2), momentum=0.0)
    # Without compilation JAX would not hold the factor aside.
    on_jax = keras.config.backend() == "jax"
    model.compile(rule, loss=minus_output, jit_compile=on_jax)
    model.optimizer.build(model.trainable_variables)
    return model


def moves(model, epochs, callbacks=()):
    """How far each epoch of one update moves the weight."""
    ones = np.ones((NUM_REPLICAS, 1), "float32")
    found = []
    for _ in range(epochs):
        before = model.get_weights()[0].item()
        model.fit(ones, ones, NUM_REPLICAS, verbose=0, callbacks=[*callbacks])
        found.append(model.get_weights()[0].item() - before)
    return found


def main(kind):
    replicas = NUM_REPLICAS if kind == "mirrored" else None
    strategy = make_strategy(kind, replicas)
    folder = Path(tempfile.mkdtemp())
    store = CheckpointStore(folder / "checkpoints")
    with strategy.scope():
        model = make_model()
    found = {"moves": moves(model, 3, [Lower()]) + moves(model, 1)}
    store.save(model, 4)
    with strategy.scope():
        again = make_model()
    store.restore(again)
    found["restored"] = moves(again, 1)
    rate = again.optimizer.learning_rate
    found["rate"] = float(keras.ops.convert_to_numpy(rate))
    model.save(folder / "model.keras")
    with strategy.scope():
        loaded = keras.models.load_model(folder / "model.keras")
    found["loaded"] = moves(loaded, 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
