"""Detects training that diverges, and lowers the learning rate."""

import math

import keras

from keras_deepnmt.models.training_step.training_state import (
    update_count,
    write_back_weights,
)


class Diverged(Exception):
    """Raised in `fit` if training has diverged.

    Args:
        step: number of the update at which training had diverged, from 1.
        loss: loss of that update.
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
    consecutive bad updates, raise `Diverged`. The loss of an update is computed
    from the logs, which hold the mean over the epoch so far; the step computes
    nothing more.

    Reading a loss waits until the device has computed it. So the losses of
    `check_every` updates are kept and read together, in the order of the
    updates; `check_every` decides only when divergence is found, not whether.
    They are also read before a validation and at the end of an epoch. Put this
    callback before the one that saves checkpoints, and call `check` before
    each save: `CheckpointCallback(..., before_save=lambda step:
    detector.check())`.

    Args:
        threshold: float above 1, or `None` to check only for a non-finite
            loss. Defaults to `None`.
        patience: int. Number of consecutive bad updates. Defaults to `10`.
        decay: float in (0, 1). Decay rate of the running mean. Defaults to
            `0.99`.
        check_every: int. Number of updates whose losses are read together.
            Defaults to `10`.

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

    def __init__(self, threshold=None, patience=10, decay=0.99, check_every=10):
        if threshold is not None and not 1 < threshold < math.inf:
            raise ValueError(
                "`threshold` must be finite and above 1. Received: "
                f"threshold={threshold}"
            )
        if patience < 1 or not 0 < decay < 1:
            raise ValueError(
                "`patience` must be at least 1, `decay` must lie in (0, 1). "
                f"Received: patience={patience}, decay={decay}"
            )
        if check_every < 1:
            raise ValueError(
                "`check_every` must be at least 1. Received: "
                f"check_every={check_every}"
            )
        super().__init__()
        self.threshold = threshold
        self.patience = patience
        self.decay = decay
        self.check_every = check_every
        self.state = []
        self._step = 0
        self._unread = []

    def on_train_begin(self, logs=None):
        self._step = update_count(self.model)
        self._unread = []

    def on_epoch_begin(self, epoch, logs=None):
        self._loss_sum = self._token_sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        self._unread.append((self._step, logs["loss"], logs.get("tokens")))
        if len(self._unread) >= self.check_every:
            self.check()

    def on_test_begin(self, logs=None):
        self.check()

    def on_epoch_end(self, epoch, logs=None):
        self.check()

    def check(self):
        """Reads the losses of all updates made so far.

        Raises:
            Diverged: if training has diverged.
        """
        unread, self._unread = self._unread, []
        for step, loss, tokens in unread:
            loss = float(loss)
            if not math.isfinite(loss):
                self._break_off(step, loss, step)
            if self.threshold is not None:
                self._compare(step, self._of_update(loss, tokens))

    def _of_update(self, mean, tokens):
        """Computes the loss of one update from two means over the epoch."""
        tokens = self._token_sum + 1.0 if tokens is None else float(tokens)
        before = self._loss_sum, self._token_sum
        self._loss_sum, self._token_sum = mean * tokens, tokens
        return (self._loss_sum - before[0]) / max(tokens - before[1], 1.0)

    def _compare(self, step, loss):
        mean, num_bad = self.state or (loss, 0)
        if loss > self.threshold * mean:
            num_bad += 1
        else:
            mean = self.decay * mean + (1 - self.decay) * loss
            num_bad = 0
        self.state = [mean, num_bad]
        if num_bad >= self.patience:
            self._break_off(step, loss, step - num_bad + 1)

    def _break_off(self, step, loss, first_bad_step):
        write_back_weights(self.model)
        raise Diverged(step, loss, first_bad_step)


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
            f"{type(optimizer).__name__}. Use Adam, AdamW, Muon or Nesterov "
            "of keras_deepnmt.training."
        )
    before = float(keras.ops.convert_to_numpy(optimizer.rate_factor))
    optimizer.rate_factor.assign(before * factor)
