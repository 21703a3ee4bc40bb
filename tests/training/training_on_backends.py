"""Trains small models under a strategy and a backend; prints what it finds.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start. One
run does all that `test_backends.py` asks for.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers, ops

from keras_deepnmt.training import (
    Adam,
    CheckpointStore,
    Constant,
    Muon,
    Nesterov,
    TemperatureDecay,
    ValidateAverage,
    WarmUp,
    averaged_weights,
    make_strategy,
)

NUM_REPLICAS = 2
MOMENTUM, UPDATES = 0.3, 7


def compiled(model, rule, loss):
    # Without compilation JAX would not hold weights and factor aside.
    on_jax = keras.config.backend() == "jax"
    model.compile(rule, loss, jit_compile=on_jax)
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, data, updates, *callbacks, **options):
    """Trains with all data in each update; returns the logs."""
    return model.fit(
        *data,
        batch_size=len(data[0]),
        epochs=updates,
        shuffle=False,
        callbacks=list(callbacks),
        verbose=0,
        **options,
    ).history


def regression(width, units):
    random = np.random.default_rng(0)
    return random.normal(size=(4, width)), random.normal(size=(4, units))


def first_output(labels, outputs):
    return outputs


# --- a factor on the rate --------------------------------------------------


@keras.saving.register_keras_serializable("training_on_backends")
def minus_output(labels, outputs):
    return -outputs


class Lower(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.rate_factor.assign(0.25)


def make_rate_model():
    dense = layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    # Without momentum an update moves the weight by the rate itself.
    rule = Nesterov(WarmUp(Constant(0.5), warmup_steps=2), momentum=0.0)
    model = keras.Sequential([layers.Input((1,)), dense])
    return compiled(model, rule, minus_output)


def moves(model, updates, *callbacks):
    """How far each update moves the weight."""
    ones = np.ones((NUM_REPLICAS, 1), "float32")
    found = []
    for _ in range(updates):
        before = model.get_weights()[0].item()
        fit(model, (ones, ones), 1, *callbacks)
        found.append(model.get_weights()[0].item() - before)
    return found


def rate(strategy, folder):
    """The moves with a rate that a callback lowers, also from files."""
    store = CheckpointStore(folder / "checkpoints")
    with strategy.scope():
        model = make_rate_model()
    found = {"moves": moves(model, 3, Lower()) + moves(model, 1)}
    store.save(model, 4)
    with strategy.scope():
        again = make_rate_model()
    store.restore(again)
    found["restored"] = moves(again, 1)
    found["rate"] = float(ops.convert_to_numpy(again.optimizer.learning_rate))
    model.save(folder / "model.keras")
    with strategy.scope():
        loaded = keras.models.load_model(folder / "model.keras")
    found["loaded"] = moves(loaded, 1)
    return found


# --- Muon ------------------------------------------------------------------


def make_muon_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((3,)), layers.Dense(2)])
    return compiled(model, Muon(0.3), "mse")


def muon(strategy, folder):
    """The weights after training at once and from a checkpoint."""

    def train(model):
        fit(model, regression(3, 2), 2)
        return [weight.tolist() for weight in model.get_weights()]

    store = CheckpointStore(folder)
    with strategy.scope():
        model, again = make_muon_model(), make_muon_model()
    found = {"saved": train(model)}
    store.save(model, 2)
    found["last"] = train(model)
    store.restore(again)
    found["resumed"] = train(again)
    return found


# --- temperatures ----------------------------------------------------------


class GivesTemperature(layers.Layer):
    def build(self, inputs_shape):
        self.kernel = self.add_weight(name="kernel", initializer="zeros")
        self.temperature = self.add_weight(
            name="temperature", initializer="ones", trainable=False
        )

    def call(self, inputs):
        return 0.0 * inputs * self.kernel + self.temperature


class WatchLosses(keras.callbacks.Callback):
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


def temperatures(strategy, folder):
    """The temperature in each update and at the end."""
    watch = WatchLosses()
    with strategy.scope():
        model = keras.Sequential(
            [layers.Input((1,)), GivesTemperature(), GivesTemperature()]
        )
        compiled(model, "sgd", first_output)
    ones = np.ones((8, 1), "float32")
    decay = TemperatureDecay(start=5.0, factor=0.5, minimum=0.1)
    for _ in range(2):
        # Two epochs of four updates.
        model.fit(ones, ones, 2, 2, verbose=0, callbacks=[decay, watch])
    last = [float(ops.convert_to_numpy(w)) for w in model.get_weights()[1::2]]
    return {"losses": watch.losses, "last": last}


# --- averages --------------------------------------------------------------


class WatchWeights(keras.callbacks.Callback):
    """Keeps the raw weights after each update."""

    def __init__(self):
        super().__init__()
        self.raw = []

    def on_train_batch_end(self, batch, logs=None):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.raw.append(self.model.get_weights())


def make_average_model(momentum=MOMENTUM):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            layers.Input((5,)),
            layers.Dense(3, activation="tanh"),
            layers.Dense(1),
        ]
    )
    return compiled(model, Adam(0.05, average_momentum=momentum), "mse")


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


def averages(strategy, folder):
    """How far the averages of weights are from those of NumPy."""
    data = regression(5, 1)

    def losses_of(model, updates, *callbacks):
        logs = fit(model, data, updates, *callbacks, validation_data=data)
        return logs["val_loss"]

    store = CheckpointStore(folder)
    found = {}
    with strategy.scope():
        model, watch = make_average_model(), WatchWeights()
        plain = make_average_model(None)
        losses = losses_of(model, UPDATES, ValidateAverage(), watch)
        losses_of(plain, UPDATES)
        expected = reference(watch.raw)
        found["raw"] = difference(model.get_weights(), plain.get_weights())
        with averaged_weights(model):
            averaged = model.get_weights()
        found["averages"] = difference(averaged, expected[-1])
        found["distance"] = difference(averaged, model.get_weights())
        found["raw after"] = difference(model.get_weights(), watch.raw[-1])
        store.save(model, UPDATES)
        again = make_average_model()
        store.restore(again)
        for one in (model, again):
            losses += losses_of(one, 1, ValidateAverage(), watch)
        found["resumed"] = difference(model.get_weights(), again.get_weights())
        found["resumed loss"] = abs(losses[-1] - losses[-2])
        for variable, value in zip(
            plain.trainable_variables, expected[2], strict=True
        ):
            variable.assign(value)
        loss = plain.evaluate(*data, batch_size=4, verbose=0)
    found["validation"] = abs(losses[2] - loss)
    return found


def main(kind):
    strategy = make_strategy(kind, NUM_REPLICAS if kind == "mirrored" else None)
    found = {
        function.__name__: function(strategy, Path(tempfile.mkdtemp()))
        for function in (rate, muon, temperatures, averages)
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
