"""Callbacks that save checkpoints and stop a run early."""

from collections.abc import Callable

import keras

from keras_deepnmt.models.training_step.training_state import update_count
from keras_deepnmt.training.checkpoints import CheckpointStore, mode_of


class CheckpointCallback(keras.callbacks.Callback):
    """Saves checkpoints at equal distances, counted back from the last update.

    The last checkpoints, which are averaged, are thus equally far apart
    whatever the number of updates. A checkpoint at the end of an epoch is
    saved after the validation, so that a run killed during the validation runs
    it again. The extra checkpoint of an interrupted run is deleted after the
    next one is saved.

    With `monitor`, the checkpoints of the best validations are kept too, see
    `CheckpointStore.save_best`, whether or not one is due then.

    Put it last in the list, so that the other callbacks have written their
    results of an epoch before the checkpoint.

    Args:
        store: the `CheckpointStore` to save to.
        every: int. Number of updates between two checkpoints.
        total_steps: int. Number of updates of the whole run.
        before_save: function that is called with the number of updates made
            before each checkpoint, to write files that belong to it. Defaults
            to a function that does nothing.
        monitor: name of the value in the logs by which validations are
            compared, such as `"val_bleu"`. Of equal ones the first is the
            best. Defaults to `None`: no best checkpoint is kept.
        mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
            `"min"` otherwise.

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
        monitor: str | None = None,
        mode: str | None = None,
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
        self.monitor = monitor
        self.mode = mode or mode_of(monitor or "")
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
        # Before the other checkpoint: a run killed between the two goes on
        # from an earlier one and makes this validation again.
        if self.monitor in (logs or {}):
            self._take_weights()
            self.store.save_best(
                self.model,
                self._step,
                self.monitor,
                float(logs[self.monitor]),
                self.mode,
            )
        if self.is_due(self._step) or self.model.stop_training:
            self._save()

    def _take_weights(self):
        # On JAX `fit` keeps the weights outside the model during an epoch.
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()

    def _save(self):
        self._take_weights()
        self.before_save(self._step)
        self.store.save(self.model, self._step)
        for step in self.store.steps():
            if step < self._step and not self.is_due(step):
                self.store.delete(step)


class EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras' early stopping, continued after a restart.

    Keras' own starts counting again at every `fit`; a run that is killed once
    a day would never stop early.

    Args:
        monitor: name of the value in the logs, such as `"val_bleu"`.
        patience: int. Number of validations without a better value before
            training stops.
        mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
            `"min"` otherwise.
        history: list of `(epoch, logs)` of earlier validations. Defaults to
            none.

    Example:
    >>> keras_deepnmt.training.EarlyStopping("val_bleu", patience=3).mode
    'max'
    """

    def __init__(self, monitor, patience, mode=None, history=()):
        self.mode = mode or mode_of(monitor)
        super().__init__(monitor=monitor, patience=patience, mode=self.mode)
        self._history = list(history)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        for epoch, past in self._history:
            super().on_epoch_end(epoch, past)

    def on_epoch_end(self, epoch, logs=None):
        self._history.append((epoch, dict(logs or {})))
        super().on_epoch_end(epoch, logs)
