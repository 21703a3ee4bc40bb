"""Callbacks that save checkpoints and stop a run early."""

import math
from collections.abc import Callable

import keras

from keras_deepnmt.models.training_step.training_state import (
    update_count,
    write_back_weights,
)
from keras_deepnmt.training.checkpoints import CheckpointStore, mode_of


class CheckpointCallback(keras.callbacks.Callback):
    """Saves checkpoints at equal distances, counted back from the last update.

    The last checkpoints, which are averaged, are thus equally far apart
    whatever the number of updates. A checkpoint at the end of an epoch is
    saved after the validation, so that a run killed during the validation runs
    it again.

    Put it last in the list, so that the other callbacks have written their
    results of an epoch before the checkpoint.

    Args:
        store: the `CheckpointStore` to save to.
        every: int. Number of updates between two checkpoints.
        total_steps: int. Number of updates of the whole run.
        before_save: function that is called with the number of updates made
            before each checkpoint, to write files that belong to it. Defaults
            to a function that does nothing.

    Raises:
        ValueError: if `every` is below one.

    Example:
    >>> store = keras_deepnmt.training.CheckpointStore("run/checkpoints")
    >>> callback = keras_deepnmt.training.CheckpointCallback(store, 300, 1000)
    >>> [step for step in range(1, 1001) if callback.is_due(step)]
    [100, 400, 700, 1000]
    """

    def __init__(
        self,
        store: CheckpointStore,
        every: int,
        total_steps: int,
        before_save: Callable[[int], None] = lambda step: None,
    ):
        super().__init__()
        if every < 1:
            raise ValueError(
                f"`every` must be at least 1. Received: every={every}"
            )
        self.store = store
        self.every = every
        self.total_steps = total_steps
        self.before_save = before_save
        self._step = 0

    def is_due(self, step: int) -> bool:
        """Returns whether a checkpoint is saved after `step` updates."""
        return (self.total_steps - step) % self.every == 0

    def on_train_begin(self, logs=None):
        self._step = update_count(self.model)

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        is_last_of_epoch = batch + 1 == self.params.get("steps")
        if self.is_due(self._step) and not is_last_of_epoch:
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        if self.is_due(self._step) or self.model.stop_training:
            self._save()

    def _save(self):
        write_back_weights(self.model)
        self.before_save(self._step)
        self.store.save(self.model, self._step)


class BestCheckpointCallback(keras.callbacks.Callback):
    """Saves the checkpoints of the best validations.

    See `CheckpointStore.save_best`. Put it after the callback that logs the
    value, and before those that write the results of an epoch, such as
    `keras.callbacks.CSVLogger`: a run that is interrupted while the checkpoint
    is saved then has no result of this validation, and makes it again.

    Args:
        store: the `CheckpointStore` to save to.
        monitor: name of the value in the logs by which validations are
            compared, such as `"val_bleu"`. Of equal values the first is the
            best.
        mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
            `"min"` otherwise.

    Example:
    >>> store = keras_deepnmt.training.CheckpointStore("run/checkpoints")
    >>> best = keras_deepnmt.training.BestCheckpointCallback(store, "val_loss")
    >>> best.mode
    'min'
    """

    def __init__(
        self, store: CheckpointStore, monitor: str, mode: str | None = None
    ):
        super().__init__()
        self.store = store
        self.monitor = monitor
        self.mode = mode or mode_of(monitor)

    def on_epoch_end(self, epoch, logs=None):
        if self.monitor in (logs or {}):
            self.store.save_best(
                self.model,
                update_count(self.model),
                self.monitor,
                float(logs[self.monitor]),
                self.mode,
            )


class EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras' early stopping, continued after a restart.

    Keras' own starts counting again at every `fit`; a run that is killed once
    a day would never stop early. A value that is NaN is no better one. If the
    earlier validations alone say stop, `fit` makes one update and one
    validation, since it asks only after an update.

    Args:
        monitor: name of the value in the logs, such as `"val_bleu"`.
        patience: int. Number of validations without a better value before
            training stops.
        mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
            `"min"` otherwise.
        history: list of `(epoch, logs)` of earlier validations. Defaults to
            none.

    Attributes:
        reason: text that says why training stops after the validations so
            far, or `None` if it goes on.

    Example:
    >>> keras_deepnmt.training.EarlyStopping("val_bleu", patience=3).mode
    'max'
    """

    def __init__(self, monitor, patience, mode=None, history=()):
        self.mode = mode or mode_of(monitor)
        super().__init__(monitor=monitor, patience=patience, mode=self.mode)
        self._history = list(history)

    @property
    def reason(self):
        if self.wait < max(self.patience, 1):
            return None
        steps = [
            logs["step"]
            for _, logs in self._history
            if logs.get(self.monitor) == self.best and "step" in logs
        ]
        update = f" of update {int(steps[0]):,}" if steps else ""
        value = f"better `{self.monitor}` than {self.best:.4g}{update}"
        if math.isinf(self.best):
            value = f"finite `{self.monitor}`"
        return (
            f"the last {self.wait} validations had no {value}. "
            f"`training.early_stopping_patience` is {self.patience}; "
            "a larger one, or null, continues."
        )

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        # Otherwise the first value is the best one, also if it is NaN, which
        # no other is better than.
        self.best = -math.inf if self.mode == "max" else math.inf
        stops = self.model.stop_training
        for epoch, past in self._history:
            super().on_epoch_end(epoch, past)
        # Earlier validations may have been made with less patience left.
        self.model.stop_training = stops or self.reason is not None

    def on_epoch_end(self, epoch, logs=None):
        self._history.append((epoch, dict(logs or {})))
        super().on_epoch_end(epoch, logs)
        if self.reason is not None:  # Keras never stops after the first one
            self.model.stop_training = True
