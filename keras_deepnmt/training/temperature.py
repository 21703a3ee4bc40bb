"""Decreases a temperature during training."""

import math

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.models.training_step.training_state import (
    update_count,
    write_back_weights,
)


def temperature_weights(model: keras.Model) -> list[keras.Variable]:
    """Returns the temperature of every layer that has one."""
    return [
        weight
        for weight in model.non_trainable_weights
        if weight.name == "temperature" and not tuple(weight.shape)
    ]


def check_has_temperature(model: keras.Model) -> None:
    """Refuses a model without a temperature that could fall."""
    if not temperature_weights(model):
        raise UserError(
            "a falling temperature needs a layer with a scalar weight "
            '"temperature" that does not train. Received: '
            f"{model.name}, which has none. Leave `training.temperature` out, "
            "or choose such a layer."
        )


class TemperatureDecay(keras.callbacks.Callback):
    """Decreases the temperature of every layer that has one, at each update.

    A relaxed sample (Gumbel-softmax) is smooth at a high temperature, where
    all choices get gradients, and nearly one-hot at a low one. Role-interactive
    layers are fine-tuned from a high to a low one (Weissenborn et al., 2019);
    with `k` updates made:
        temperature(k) = max(minimum, start * factor ** k)
    The defaults are the paper's. The temperature depends only on the number of
    updates, so that a restart is exact. Validation uses the temperature of the
    last update.

    A layer has a temperature if it has a scalar weight of that name that is
    not trained: `self.add_weight(name="temperature", shape=(),
    initializer="ones", trainable=False)`. It is saved with the model.

    Args:
        start: float. Temperature at the first update. Defaults to `5.0`.
        factor: float in (0, 1). Factor on the temperature at each update.
            Defaults to `0.9995`.
        minimum: float. Lowest temperature. Defaults to `0.5`.

    Raises:
        ValueError: if `start` or `minimum` is not above zero, `minimum` is
            above `start`, `start` is not finite, or `factor` is not between 0
            and 1.
        UserError: when training begins, if no layer has a temperature.

    Example:
    >>> decay = keras_deepnmt.training.TemperatureDecay(5.0, 0.9995, 0.5)
    >>> [round(decay.temperature(k), 4) for k in (0, 1000, 9999)]
    [5.0, 3.0323, 0.5]
    """

    def __init__(self, start=5.0, factor=0.9995, minimum=0.5):
        if not 0 < minimum <= start < math.inf:
            raise ValueError(
                "`minimum` must be above zero and at most `start`, and `start` "
                "finite. Received: "
                f"start={start}, minimum={minimum}"
            )
        if not 0 < factor < 1:
            raise ValueError(
                f"`factor` must lie between 0 and 1. Received: factor={factor}"
            )
        super().__init__()
        self.start = start
        self.factor = factor
        self.minimum = minimum
        self._step = 0
        self._weights = []

    def temperature(self, step: int) -> float:
        """Computes the temperature of one update.

        Args:
            step: number of updates made before it.

        Returns:
            The temperature.
        """
        return max(self.minimum, self.start * self.factor**step)

    def on_train_begin(self, logs=None):
        self._step = update_count(self.model)
        check_has_temperature(self.model)
        self._weights = temperature_weights(self.model)

    def on_train_batch_begin(self, batch, logs=None):
        now = self.temperature(self._step)
        self._step += 1
        if batch and now == self.temperature(self._step - 2):
            return
        write_back_weights(self.model)
        for weight in self._weights:
            weight.assign(now)
