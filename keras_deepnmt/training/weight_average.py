"""Averages of weights: a moving average in training, and means of files."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import keras
import numpy as np
from keras import ops

from keras_deepnmt.errors import UserError
from keras_deepnmt.weights_files import opened_weights, written_weights


class WeightAverage:
    """Gives a Keras optimizer an exponential moving average of the weights.

    The weights after one update are noisy; their average over about the last
    `1 / (1 - average_momentum)` updates is usually better, and costs almost no
    training time. With the weights `w(n)` after update `n`, counted from one:
        d(n) = min(average_momentum, (n - 1) / (n + 8))
        a(n) = d(n) * a(n - 1) + (1 - d(n)) * w(n)
    `d(n)` starts at zero, so that the random initial weights soon have no
    influence. The averages are variables of the optimizer: saved with it and
    kept equal by a strategy. Training continues with the raw weights;
    `averaged_weights` and `ValidateAverage` use the averages.

    Args:
        *args: arguments of the Keras optimizer.
        average_momentum: float in (0, 1), or `None` for no average.
        **kwargs: arguments of the Keras optimizer.

    Attributes:
        averages: list of variables, one per trainable weight; empty without
            an average.

    Raises:
        ValueError: if `average_momentum` is not between 0 and 1, or weights
            are stored in bfloat16 or float16, in which an average stands still.

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
            for variable in variables:
                if variable.dtype in ("bfloat16", "float16"):
                    raise ValueError(
                        "`average_momentum` needs weights in float32. "
                        f"Received: average_momentum={self.average_momentum} "
                        f"and {variable.path} in {variable.dtype}. Use the "
                        f"dtype mixed_{variable.dtype}, or leave it out."
                    )
            self.averages = self.add_optimizer_variables(variables, "average")
        super().build(variables)

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate)
        if self.average_momentum is None:
            return
        # The lookup of Keras' guide to custom optimizers.
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


def load_averages(
    file: Path,
    optimizer: keras.optimizers.Optimizer,
    weights: Sequence[keras.Variable],
) -> None:
    """Replaces weights by their averages in a checkpoint's file.

    Before the first update the averages have no values, and the weights do not
    change. `optimizer` has the options of the one that trained the weights, and
    is not built.
    """
    optimizer.build(weights)
    with opened_weights(file) as saved:
        state = saved["optimizer"]
        # In mixed_float16 an optimizer that scales the loss is around it.
        state = state.get("inner_optimizer", state)
        optimizer.load_own_variables(state["vars"])
    if ops.convert_to_numpy(optimizer.iterations):
        for weight, average in zip(weights, optimizer.averages, strict=True):
            weight.assign(average)


@contextlib.contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Uses the averaged weights in a block, then restores the raw ones exactly.

    Before the first update, or if the optimizer keeps no averages, the weights
    do not change.

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
    raw = _raw_values(model)
    try:
        _assign(model, _averages(model))
        yield
    finally:
        _restore(model, raw)


class ValidateAverage(keras.callbacks.Callback):
    """Makes `fit` validate the averaged weights and train the raw ones.

    Does nothing if the optimizer keeps no averages. Put it first in the list.
    Other callbacks see the raw weights at the end of an epoch, unless they use
    `averaged_weights`.

    Example:
    >>> callback = keras_deepnmt.training.ValidateAverage()
    """

    _raw = ()

    def on_test_begin(self, logs=None):
        self._raw = _raw_values(self.model)
        _assign(self.model, _averages(self.model))

    def on_test_end(self, logs=None):
        _restore(self.model, self._raw)
        self._raw = ()

    def on_train_end(self, logs=None):
        # If a validation was interrupted, perhaps amid an assignment.
        self.on_test_end()


def _averages(model):
    """Lists the averages of the weights; none before the first update."""
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    averages = getattr(optimizer, "averages", [])
    if not averages or not ops.convert_to_numpy(optimizer.iterations):
        return []
    return averages


def _raw_values(model):
    """Copies the weights that averages are to replace; none without them."""
    if not _averages(model):
        return []
    # A copy: on the CPU the array may share the variable's memory.
    return [ops.convert_to_numpy(v).copy() for v in model.trainable_variables]


def _restore(model, raw):
    """Assigns the raw values, all of them even if it is interrupted."""
    try:
        _assign(model, raw)
    except BaseException:
        _assign(model, raw)
        raise


def _assign(model, values):
    if len(values):
        for variable, value in zip(
            model.trainable_variables, values, strict=True
        ):
            variable.assign(ops.convert_to_numpy(value))


def write_mean(files: Sequence[Path], output: str | Path) -> None:
    """Writes the mean of several `.weights.h5` files of one model, atomically.

    Sums in float64 and leaves out the optimizer. Integer arrays are copied from
    the last file. Raises a `UserError` if a file is not as `opened_weights`
    demands, and an `OSError` if the disk is full.
    """
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(opened_weights(file)) for file in files]
        with written_weights(output) as target:
            _fill(sources, target)


def _fill(sources, target):
    """Copies the first file's layout with the mean of all files' arrays."""
    for key, value in sources[0].attrs.items():
        target.attrs[key] = value

    def visit(name, item):
        if name.split("/")[0] == "optimizer":
            return
        if isinstance(item, h5py.Group):
            new = target.require_group(name)
        else:
            new = target.create_dataset(name, data=_mean(sources, name, item))
        for key, value in item.attrs.items():
            new.attrs[key] = value

    sources[0].visititems(visit)


def _mean(sources, name, first):
    dtype = _dtype(first)
    if dtype.kind != "f" and dtype != "bfloat16":
        first = sources[-1].get(name, first)
        return first[()]
    total = np.zeros(first.shape, "float64")
    for source in sources:
        other = source.get(name)
        if getattr(other, "shape", None) != first.shape:
            raise UserError(
                f"{source.filename}: {name} must have the shape {first.shape}, "
                f"as in {first.file.filename}. It is another model's."
            )
        total += np.asarray(other[()]).view(_dtype(other)).astype("float64")
    return (total / len(sources)).astype(dtype)


def _dtype(dataset):
    # HDF5 has no bfloat16: Keras stores the two bytes.
    return np.dtype("bfloat16") if dataset.dtype == "V2" else dataset.dtype
