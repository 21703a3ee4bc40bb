"""Keras callbacks that keep a run: checkpoints, and a stop that resumes."""

import keras

from keras_deepnmt.training.checkpoints import CheckpointStore


class CheckpointCallback(keras.callbacks.Callback):
    """Saves a checkpoint every so many updates and at the end of an epoch.

    The checkpoint of an epoch's last update is written after the validation,
    so that a run killed in the middle of one validates again.

    Put it last in the list: what the others write about an epoch is then on
    disk before the checkpoint that says so.

    Args:
        store: where checkpoints go.
        every: int. Updates between two checkpoints.

    Raises:
        ValueError: if `every` is below one.

    Example:
    >>> store = keras_deepnmt.training.CheckpointStore("run/checkpoints")
    >>> keras_deepnmt.training.CheckpointCallback(store, every=500).every
    500
    """

    def __init__(self, store: CheckpointStore, every: int):
        super().__init__()
        if every < 1:
            raise ValueError(
                f"`every` must be at least 1. Received: every={every}"
            )
        self.store = store
        self.every = every
        self._step = 0

    def on_train_begin(self, logs=None):
        self._step = int(self.model.optimizer.iterations)

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        last = self.params.get("steps")
        if self._step % self.every == 0 and batch + 1 != last:
            self.store.save(self.model, self._step)

    def on_epoch_end(self, epoch, logs=None):
        self.store.save(self.model, self._step)


class EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras' early stopping that remembers what came before a restart.

    Keras' own starts to count again with every `fit`; a run that is killed
    once a day would never stop.

    Args:
        monitor: the quantity watched: `"val_bleu"`, `"val_loss"`, ...
        patience: int. Validations without a better value before the stop.
        mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
            `"min"` otherwise.
        history: list of `(epoch, logs)` of the validations already made.

    Example:
    >>> keras_deepnmt.training.EarlyStopping("val_bleu", patience=3).mode
    'max'
    """

    def __init__(self, monitor, patience, mode=None, history=()):
        self.mode = mode or ("max" if "bleu" in monitor else "min")
        super().__init__(monitor=monitor, patience=patience, mode=self.mode)
        self._history = list(history)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        for epoch, past in self._history:
            super().on_epoch_end(epoch, past)

    def on_epoch_end(self, epoch, logs=None):
        self._history.append((epoch, dict(logs or {})))
        super().on_epoch_end(epoch, logs)
