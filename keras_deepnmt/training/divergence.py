"""Notices training that has gone wrong, and lowers the rate."""

import math

import keras

from keras_deepnmt.models.training_step.training_state import update_count


class Diverged(Exception):
    """Raised out of `fit` where training has diverged.

    Args:
        step: updates made.
        loss: what the loss was.
        first_bad_step: the first update after which it was so.

    Example:
    >>> raise Diverged(7, float("nan"), 7)
    Traceback (most recent call last):
    ...
    keras_deepnmt.training.divergence.Diverged: update 7: the loss is nan
    """

    def __init__(self, step: int, loss: float, first_bad_step: int):
        super().__init__(f"update {step}: the loss is {loss:.4g}")
        self.step = step
        self.loss = loss
        self.first_bad_step = first_bad_step


class DivergenceDetector(keras.callbacks.Callback):
    """Breaks `fit` off when the loss is no number, or stays far too high.

    With `l(n)` the loss of update `n` and `m` its running mean,
        m(n) = decay * m(n - 1) + (1 - decay) * l(n),
    update `n` is bad if `l(n)` is not finite or above `threshold * m(n - 1)`;
    a bad update leaves the mean as it is. One loss that is not finite, or
    `patience` bad updates one after another, raise `Diverged`. Put it before
    what saves checkpoints. The loss is read from the logs, which hold the mean
    of the epoch so far; nothing more is computed.

    Args:
        threshold: float above 1, or `None`: only a loss that is not finite
            counts. Defaults to `None`.
        patience: int. Bad updates one after another. Defaults to `10`.
        decay: float in (0, 1). Defaults to `0.99`.

    Attributes:
        state: list of numbers from which another detector goes on.

    Raises:
        ValueError: if an argument is out of its range.
        Diverged: while training.

    Example:
    >>> detector = keras_deepnmt.training.DivergenceDetector(threshold=2.0)
    >>> detector.patience
    10
    """

    def __init__(self, threshold=None, patience=10, decay=0.99):
        if threshold is not None and not threshold > 1:
            raise ValueError(
                f"`threshold` must be above 1. Received: threshold={threshold}"
            )
        if patience < 1 or not 0 < decay < 1:
            raise ValueError(
                "`patience` must be at least 1, `decay` must lie in (0, 1). "
                f"Received: patience={patience}, decay={decay}"
            )
        super().__init__()
        self.threshold = threshold
        self.patience = patience
        self.decay = decay
        self.state = []
        self._step = 0

    def on_train_begin(self, logs=None):
        self._step = update_count(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        self._loss_sum = self._token_sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            self._break_off(loss, self._step)
        if self.threshold is not None:
            self._compare(self._of_update(loss, logs))

    def _of_update(self, mean, logs):
        """Takes the loss of one update out of the mean of the epoch."""
        tokens = float(logs.get("tokens", self._token_sum + 1.0))
        before = self._loss_sum, self._token_sum
        self._loss_sum, self._token_sum = mean * tokens, tokens
        return (self._loss_sum - before[0]) / max(tokens - before[1], 1.0)

    def _compare(self, loss):
        mean, num_bad = self.state or (loss, 0)
        if loss > self.threshold * mean:
            num_bad += 1
        else:
            mean = self.decay * mean + (1 - self.decay) * loss
            num_bad = 0
        self.state = [mean, num_bad]
        if num_bad >= self.patience:
            self._break_off(loss, self._step - num_bad + 1)

    def _break_off(self, loss, first_bad_step):
        # On JAX `fit` holds the weights aside until the epoch's end.
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        raise Diverged(self._step, loss, first_bad_step)


def lower_rate(model: keras.Model, factor: float) -> None:
    """Multiplies a model's learning rate, for all updates to come.

    Args:
        model: a compiled model whose optimizer has a `rate_factor`, which its
            checkpoints hold.
        factor: what the rate is multiplied by.

    Raises:
        ValueError: if the optimizer has no `rate_factor`.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile(keras_deepnmt.training.Adam(0.5))
    >>> lower_rate(model, 0.5)
    >>> float(model.optimizer.learning_rate)
    0.25
    """
    optimizer = model.optimizer
    # An optimizer that scales the loss holds the one that makes updates.
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not hasattr(optimizer, "rate_factor"):
        raise ValueError(
            "The rate of this optimizer cannot be lowered. Received: "
            f"{type(optimizer).__name__}. Use Adam, AdamW or Nesterov of "
            "keras_deepnmt.training."
        )
    before = float(keras.ops.convert_to_numpy(optimizer.rate_factor))
    optimizer.rate_factor.assign(before * factor)
