"""Trains a layer that gives its temperature; prints it for each update.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start.
"""

import json
import sys

import keras
import numpy as np
from keras import ops

from keras_deepnmt.training import TemperatureDecay, make_strategy

NUM_BATCHES, EPOCHS = 4, 2


class GivesTemperature(keras.layers.Layer):
    def build(self, inputs_shape):
        self.kernel = self.add_weight(name="kernel", initializer="zeros")
        self.temperature = self.add_weight(
            name="temperature", initializer="ones", trainable=False
        )

    def call(self, inputs):
        return 0.0 * inputs * self.kernel + self.temperature


class Watch(keras.callbacks.Callback):
    """Takes the loss of each update from the running mean."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_epoch_begin(self, epoch, logs=None):
        self.total = 0.0

    def on_train_batch_end(self, batch, logs=None):
        total = logs["loss"] * (batch + 1)
        self.losses.append(round(float(total - self.total), 4))
        self.total = total


def value(labels, outputs):
    return outputs


def main(kind):
    strategy = make_strategy(kind, 2 if kind == "mirrored" else None)
    watch = Watch()
    with strategy.scope():
        model = keras.Sequential(
            [keras.layers.Input((1,)), GivesTemperature(), GivesTemperature()]
        )
        on_jax = keras.config.backend() == "jax"
        model.compile("sgd", value, jit_compile=on_jax)
    ones = np.ones((2 * NUM_BATCHES, 1), "float32")
    decay = TemperatureDecay(start=5.0, factor=0.5, minimum=0.1)
    for _ in range(2):
        model.fit(ones, ones, 2, EPOCHS, verbose=0, callbacks=[decay, watch])
    last = [float(ops.convert_to_numpy(w)) for w in model.get_weights()[1::2]]
    print(json.dumps({"losses": watch.losses, "last": last}))


if __name__ == "__main__":
    main(*sys.argv[1:])
