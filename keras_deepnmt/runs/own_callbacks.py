"""Calls the callbacks of the user in a training run."""

import logging
from collections.abc import Sequence

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.loading import describe_own_error
from keras_deepnmt.own_code.lookup import (
    find_own,
    make_own,
    name_and_options,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.strategies import Workers

_logger = logging.getLogger(__name__)


class CallbackFailed(Exception):
    """Raised when a callback of the user raises `error` in method `hook`."""

    def __init__(
        self, callback: keras.callbacks.Callback, hook: str, error: Exception
    ):
        self.error = error
        said = describe_own_error(error) or f"{type(error).__name__}: {error}"
        super().__init__(
            f"the callback {type(callback).__name__} failed in {hook}: {said}"
        )


class OwnCallbacks(keras.callbacks.Callback):
    """Passes the events of one training on to the callbacks of the user.

    Each gets one `on_train_begin` and one `on_train_end`, although a training
    may be several calls of `fit`. Logs are a copy with plain numbers, which the
    callbacks share. With several worker processes, only callbacks that declare
    `on_every_worker = True` are called on workers that are not the chief.

    The callbacks are called in the order given; an error in one is raised as
    `CallbackFailed`. `epochs` is the number of validations of the whole
    training. `stop_reason` tells which callback has ended the training, or is
    `None`.
    """

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        epochs: int,
        workers: Workers,
    ):
        super().__init__()
        for callback in callbacks:
            if not isinstance(callback, keras.callbacks.Callback):
                raise UserError(
                    "`callbacks` must hold `keras.callbacks.Callback` objects. "
                    f"Received: {callback!r}"
                )
        self._callbacks = [
            callback
            for callback in callbacks
            if workers.is_chief or is_for_every_worker(type(callback))
        ]
        self._epochs = epochs
        self._workers = workers
        self._is_training = False
        self.stop_reason: str | None = None

    def set_params(self, params):
        super().set_params(params)
        for callback in self._callbacks:
            callback.set_params({**(params or {}), "epochs": self._epochs})

    def set_model(self, model):
        super().set_model(model)
        for callback in self._callbacks:
            callback.set_model(model)

    def on_train_begin(self, logs=None):
        if not self._is_training:
            self._is_training = True
            self._call("train_begin", logs)

    def end(self) -> None:
        """Ends the training for the callbacks, if it has begun for them."""
        if self._is_training:
            self._is_training = False
            self._call("train_end", {})

    def end_after(self, failure: BaseException) -> None:
        """Ends the training that something broke off; errors are logged."""
        begun, self._is_training = self._is_training, False
        for callback in self._callbacks if begun else ():
            try:
                callback.on_train_end({})
            except Exception as error:
                if not isinstance(failure, CallbackFailed):
                    failed = CallbackFailed(callback, "on_train_end", error)
                    _logger.warning("%s", failed)

    def on_epoch_begin(self, epoch, logs=None):
        self._call("epoch_begin", logs, epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._call("epoch_end", logs, epoch)

    def on_test_begin(self, logs=None):
        self._call("test_begin", logs)

    def on_test_end(self, logs=None):
        self._call("test_end", logs)

    def on_train_batch_begin(self, batch, logs=None):
        self._call("train_batch_begin", logs, batch)

    def on_train_batch_end(self, batch, logs=None):
        self._call("train_batch_end", logs, batch)

    def on_test_batch_begin(self, batch, logs=None):
        self._call("test_batch_begin", logs, batch)

    def on_test_batch_end(self, batch, logs=None):
        self._call("test_batch_end", logs, batch)

    def _call(self, hook, logs, *arguments):
        # Asked anew each time: some callbacks set a hook when an epoch begins.
        called = [c for c in self._callbacks if _has_hook(c, hook)]
        if not called:
            return  # reading the numbers would wait for the device
        logs = {name: _plain(value) for name, value in (logs or {}).items()}
        stopped = self.model.stop_training
        for callback in called:
            try:
                method = getattr(callback, f"on_{hook}")
                # As Keras passes them: the methods may name them otherwise.
                if "batch" in hook:
                    method(*arguments, logs=logs)
                else:
                    method(*arguments, logs)
            except Exception as error:
                raise CallbackFailed(callback, f"on_{hook}", error) from error
            self._check_stop(callback, stopped)

    def _check_stop(self, callback, stopped):
        """Notes who has ended the training, on all workers or on one."""
        if stopped or self.stop_reason or not self.model.stop_training:
            return
        kind = type(callback)
        if self._workers.is_distributed and not is_for_every_worker(kind):
            raise UserError(
                f"the callback {kind.__name__} stops the training on the chief "
                "alone, for which the other workers would wait. Let its class "
                "have `on_every_worker = True`."
            )
        self.stop_reason = f"the callback {kind.__name__} has ended it."


def is_for_every_worker(kind: type) -> bool:
    """Whether a class of callbacks is called on all workers."""
    return bool(getattr(kind, "on_every_worker", False))


def callback_classes(recipe: Recipe) -> list[tuple[type, dict]]:
    """Returns the classes and arguments of `training.callbacks`."""
    found = []
    for value in recipe.training.callbacks:
        name, options = name_and_options(value)
        try:
            kind = find_own(name, keras.callbacks.Callback)
            if kind is None:
                raise ValueError(
                    f'no imported file has a callback "{name}". Give its file '
                    "by `import`, or a class of an installed package with its "
                    "module."
                )
        except ValueError as error:
            raise _refused(recipe, error) from error
        found.append((kind, options))
    return found


def make_own_callbacks(
    recipe: Recipe,
    given: Sequence[keras.callbacks.Callback],
    workers: Workers,
) -> OwnCallbacks:
    """Makes the callbacks of a recipe, followed by those that are given."""
    made = []
    for kind, options in callback_classes(recipe):
        if workers.is_chief or is_for_every_worker(kind):
            try:
                made.append(make_own(kind, options))
            except Exception as error:
                said = describe_own_error(error) or error
                raise _refused(recipe, f"{kind.__name__}: {said}") from error
    training = recipe.training
    epochs = -(-training.steps // training.validate_every)
    return OwnCallbacks([*made, *given], epochs, workers)


def _refused(recipe, message):
    return UserError(f"recipe {recipe.name}, `training.callbacks`: {message}")


def _has_hook(callback, hook):
    """Whether the class or the object of a callback has a hook of its own."""
    names = [f"on_{hook}"]
    if hook.startswith("train_batch"):
        # Keras calls these by default.
        names.append(f"on_{hook.removeprefix('train_')}")
    for name in names:
        method = getattr(callback, name)
        function = getattr(method, "__func__", method)
        if function is not getattr(keras.callbacks.Callback, name):
            return True
    return False


def _plain(value):
    """A number for a scalar tensor; anything else as it is."""
    if keras.ops.is_tensor(value) and len(value.shape) == 0:
        return float(keras.ops.convert_to_numpy(value))
    return value
