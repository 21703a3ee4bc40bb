"""Divides the learning rate when the validation loss increases."""

import math

import keras

# A rate in float32 may differ by this fraction from one in Python.
_ROUNDING = 1e-6


class DivideOnPlateau(keras.callbacks.Callback):
    """Divides the learning rate each time the validation loss increases.

    With `l(e)` the loss after epoch `e`, `f` the factor on the rate:
        f(e) = f(e - 1) / divide_by   if l(e) > l(e - 1)
        f(e) = f(e - 1)               otherwise
    It stops training when a divided rate is below `minimum`; if that is so when
    training begins, after one update, since `fit` asks only then. Do not call
    `fit` if `reason` is not `None`. While a `WarmUp` lasts, the rate that it
    rises to is compared.

    The convolutional models of DenseNMT were trained in this way (Shen et al.,
    2018): Nesterov momentum with a rate of 0.25, divided by 10 down to 1e-4.

    The model needs an optimizer with a `rate_factor`, such as
    `keras_deepnmt.training.Nesterov`. Put this callback before the one that
    saves checkpoints, and after the one that logs the monitored value.

    Args:
        divide_by: float above 1. Divisor of the rate. Defaults to `10.0`.
        minimum: float. Training stops at a rate below it. Defaults to `1e-4`.
        monitor: str. Name of the value in the logs. Defaults to `"val_loss"`.
        keep_dividing: bool. Whether the rate is divided after every epoch once
            the loss has increased, as for the larger corpora of the paper.
            Defaults to `False`.
        history: list of `(epoch, logs)` of earlier validations. The factor is
            then computed from them and `first_factor` alone, not from the
            optimizer's state, so that a restart is exact. Defaults to `None`:
            the optimizer's factor is the first one. A validation that is made
            again counts once; it is recognized by its `step` in the logs or,
            without one, by its epoch.
        first_factor: float. Factor before any division; used only with
            `history`. Defaults to `1.0`.

    Attributes:
        num_divisions: int. Number of times the rate was divided.
        reason: text that says why training stops after the epochs so far, or
            `None` if it goes on.

    Raises:
        ValueError: if `divide_by` is not above 1, `minimum` is negative, or
            either is not finite; when training begins, if the optimizer has no
            `rate_factor`; after an epoch, if `monitor` is not logged.

    Reference:
        - [Shen et al., 2018](https://aclanthology.org/N18-1117/).

    Example:
    >>> divide = keras_deepnmt.training.DivideOnPlateau(divide_by=10)
    >>> divide.num_divisions
    0
    """

    def __init__(
        self,
        divide_by=10.0,
        minimum=1e-4,
        monitor="val_loss",
        keep_dividing=False,
        history=None,
        first_factor=1.0,
    ):
        if not 1 < divide_by < math.inf:
            raise ValueError(
                "`divide_by` must be finite and above 1. Received: "
                f"divide_by={divide_by}"
            )
        if not 0 <= minimum < math.inf:
            raise ValueError(
                "`minimum` must be finite and not negative. Received: "
                f"minimum={minimum}"
            )
        super().__init__()
        self.divide_by = divide_by
        self.minimum = minimum
        self.monitor = monitor
        self.keep_dividing = keep_dividing
        self._first_factor = None if history is None else first_factor
        self._losses = []
        for epoch, logs in history or ():
            if monitor in logs:
                self._note(epoch, logs)

    @property
    def num_divisions(self):
        count = 0
        losses = [loss for _, loss in self._losses]
        for before, loss in zip(losses, losses[1:], strict=False):
            if loss > before or (self.keep_dividing and count):
                count += 1
        return count

    def on_train_begin(self, logs=None):
        factor = self._variable()
        if self._first_factor is None:
            self._first_factor = float(keras.ops.convert_to_numpy(factor))
        self._set_factor()
        self._stop_under_minimum()

    def on_epoch_end(self, epoch, logs=None):
        if self.monitor not in (logs or {}):
            raise ValueError(
                f"`monitor` must be logged after each epoch. Received: "
                f"monitor={self.monitor!r}, logged: {sorted(logs or {})}"
            )
        self._note(epoch, logs)
        self._set_factor()
        self._stop_under_minimum()

    def _note(self, epoch, logs):
        # A run that continues after a shorter last epoch logs its number twice.
        validation = logs.get("step", epoch)
        # An interrupted validation is run again.
        if self._losses and self._losses[-1][0] == validation:
            self._losses.pop()
        self._losses.append((validation, float(logs[self.monitor])))

    @property
    def reason(self):
        if not self.num_divisions:
            return None
        rate = self._optimizer().rate_after_warm_up
        rate = float(keras.ops.convert_to_numpy(rate))
        if rate >= self.minimum * (1 - _ROUNDING):
            return None
        return (
            f"the learning rate, {rate:.3g}, is below "
            f"`training.learning_rate.minimum`, {self.minimum:.3g}; a lower "
            "minimum continues."
        )

    def _stop_under_minimum(self):
        if self.reason is not None:
            self.model.stop_training = True

    def _set_factor(self):
        factor = self._first_factor * self.divide_by**-self.num_divisions
        self._variable().assign(factor)

    def _optimizer(self):
        optimizer = self.model.optimizer
        # A loss-scaling optimizer wraps the one that makes the updates.
        return getattr(optimizer, "inner_optimizer", optimizer)

    def _variable(self):
        optimizer = self._optimizer()
        if not hasattr(optimizer, "rate_factor"):
            raise ValueError(
                "DivideOnPlateau needs an optimizer with a `rate_factor`. "
                f"Received: {type(optimizer).__name__}. Use Adam, AdamW, Muon "
                "or Nesterov of keras_deepnmt.training."
            )
        return optimizer.rate_factor
