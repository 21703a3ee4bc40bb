"""A running average of the weights: training goes on with the raw ones."""

import contextlib
from collections.abc import Iterator

import keras
import numpy as np
from keras import ops


class WeightAverage:
    """Gives a Keras optimizer an exponential moving average of the weights.

    The weights of one update are noisy; their average over the last
    `1 / (1 - average_momentum)` updates or so is usually better, and costs no
    training time. With the weights `w(n)` after update `n`, counted from one:
        d(n) = min(average_momentum, (n - 1) / (n + 8))
        a(n) = d(n) * a(n - 1) + (1 - d(n)) * w(n)
    The share `d(n)` begins at zero, so that the random weights of the start
    are soon forgotten. The averages are variables of the optimizer: saved with
    it and kept equal by a strategy. What trains are the raw weights; see
    `averaged_weights` and `ValidateAverage` for the use of the others.

    Args:
        *args: arguments of the Keras optimizer.
        average_momentum: float in (0, 1), or `None` for no average.
        **kwargs: arguments of the Keras optimizer.

    Attributes:
        averages: list of variables, one for each weight that trains; empty
            without an average.

    Raises:
        ValueError: if `average_momentum` is not between 0 and 1.

    Example:
    >>> class Lion(WeightAverage, keras.optimizers.Lion):
    ...     pass
    >>> Lion(0.001, average_momentum=0.999).average_momentum
    0.999
    """

    def __init__(self, *args, average_momentum=None, **kwargs):
        if average_momentum is not None and not 0 < average_momentum < 1:
            raise ValueError(
                "`average_momentum` must lie between 0 and 1. "
                f"Received: average_momentum={average_momentum}"
            )
        super().__init__(*args, **kwargs)
        self.average_momentum = average_momentum
        self.averages = []

    def build(self, variables):
        if not self.built and self.average_momentum is not None:
            self.averages = self.add_optimizer_variables(variables, "average")
        super().build(variables)

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate)
        if self.average_momentum is None:
            return
        # As Keras' guide to own optimizers finds a variable's state.
        average = self.averages[self._get_variable_index(variable)]
        made = ops.cast(self.iterations, variable.dtype)
        share = ops.minimum(
            ops.cast(self.average_momentum, variable.dtype), made / (made + 9)
        )
        mean = share * average + (1 - share) * variable
        self.assign(average, mean)

    def get_config(self):
        config = super().get_config()
        return {**config, "average_momentum": self.average_momentum}


def take_averages(model: keras.Model) -> list[np.ndarray]:
    """Puts the averages into a model for good.

    Args:
        model: a model.

    Returns:
        The raw values of `model.trainable_variables`; empty where there are
        no averages yet, and the weights stay as they are.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile(keras_deepnmt.training.Adam(average_momentum=0.99))
    >>> take_averages(model)
    []
    """
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    averages = getattr(optimizer, "averages", [])
    if not averages or not ops.convert_to_numpy(optimizer.iterations):
        return []
    raw = [
        # A copy: on the processor it may else be the variable's own memory.
        ops.convert_to_numpy(v).copy()
        for v in model.trainable_variables
    ]
    _assign(model, averages)
    return raw


@contextlib.contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Puts the averages into a model, and the raw weights back, bit by bit.

    Before the first update, and where no optimizer keeps averages, the weights
    stay as they are.

    Args:
        model: a model.

    Yields:
        Nothing.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile(keras_deepnmt.training.Adam(average_momentum=0.99))
    >>> with averaged_weights(model):
    ...     weights = model.get_weights()
    """
    raw = take_averages(model)
    try:
        yield
    finally:
        _assign(model, raw)


class ValidateAverage(keras.callbacks.Callback):
    """Lets `fit` validate the averaged weights and train the raw ones.

    Does nothing where the optimizer keeps no averages. Put it first in the
    list. What other callbacks measure when an epoch has ended is measured
    on the raw weights, unless they use `averaged_weights`.

    Example:
    >>> callback = keras_deepnmt.training.ValidateAverage()
    """

    _raw = None

    def on_test_begin(self, logs=None):
        self._raw = take_averages(self.model)

    def on_test_end(self, logs=None):
        if self._raw is not None:
            _assign(self.model, self._raw)
            self._raw = None

    def on_train_end(self, logs=None):
        # Where a validation was broken off.
        self.on_test_end()


def _assign(model, values):
    if len(values):
        for variable, value in zip(
            model.trainable_variables, values, strict=True
        ):
            variable.assign(ops.convert_to_numpy(value))
