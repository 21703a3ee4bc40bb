"""Detects training that diverges, and lowers the learning rate."""

import math

import keras

from keras_deepnmt.models.training_step.training_state import update_count


class Diverged(Exception):
    """Raised in `fit` if training has diverged.

    Args:
        step: number of updates made.
        loss: loss of the last update.
        first_bad_step: first of the consecutive updates with a bad loss.

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
    """Stops `fit` when the loss is not finite, or stays far too high.

    With `l(n)` the loss of update `n` and `m` its running mean,
        m(n) = decay * m(n - 1) + (1 - decay) * l(n),
    update `n` is bad if `l(n)` is not finite or above `threshold * m(n - 1)`;
    a bad update does not change the mean. One non-finite loss, or `patience`
    consecutive bad updates, raise `Diverged`. Put this callback before the one
    that saves checkpoints. The loss of an update is computed from the logs,
    which hold the mean over the epoch so far; the step computes nothing more.

    Args:
        threshold: float above 1, or `None` to check only for a non-finite
            loss. Defaults to `None`.
        patience: int. Number of consecutive bad updates. Defaults to `10`.
        decay: float in (0, 1). Decay rate of the running mean. Defaults to
            `0.99`.

    Attributes:
        state: list of the running mean and the number of bad updates; assign
            it to another detector to continue.

    Raises:
        ValueError: if an argument is out of its range.
        Diverged: during training.

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
        """Computes the loss of one update from two means over the epoch."""
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
        # On JAX `fit` keeps the weights outside the model during an epoch.
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        raise Diverged(self._step, loss, first_bad_step)


def lower_rate(model: keras.Model, factor: float) -> None:
    """Multiplies a model's learning rate, for all later updates.

    Args:
        model: a compiled model whose optimizer has a `rate_factor`; the factor
            is saved in its checkpoints.
        factor: factor on the learning rate.

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
    # A loss-scaling optimizer wraps the one that makes the updates.
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not hasattr(optimizer, "rate_factor"):
        raise ValueError(
            "The rate of this optimizer cannot be lowered. Received: "
            f"{type(optimizer).__name__}. Use Adam, AdamW or Nesterov of "
            "keras_deepnmt.training."
        )
    before = float(keras.ops.convert_to_numpy(optimizer.rate_factor))
    optimizer.rate_factor.assign(before * factor)
