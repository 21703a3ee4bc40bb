"""Measures the time and the memory of updates."""

import statistics
import sys
import time
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_source import BatchSource
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.batch_trial import largest_batch_shapes
from keras_deepnmt.runs.dry_run_result import (
    UPDATES_PER_SHAPE,
    MeasuredShape,
)
from keras_deepnmt.runs.objective_options import batch_transforms


def measure_updates(
    recipe: Recipe,
    data: PreparedData,
    plan: BatchPlan,
    model: keras.Model,
    say: Callable[[str], None],
) -> tuple[MeasuredShape, ...]:
    """Trains on the largest batch shapes and on the most frequent one.

    `say` prints a line for each of them.
    """
    by_frequency = dict(
        zip(plan.batch_shapes, plan.batches_per_shape, strict=True)
    )
    frequent = max(by_frequency, key=by_frequency.__getitem__)
    used = [shape for shape, batches in by_frequency.items() if batches]
    chosen = sorted({frequent, *largest_batch_shapes(used)})
    source = BatchSource(
        data.store("train"), plan, transforms=batch_transforms(recipe, data)
    )
    first_steps = plan.first_steps(0, plan.batches_per_epoch)
    measured = []
    for shape in chosen:
        say(
            f"Measuring updates of {shape.batch_size} x "
            f"({shape.source_length}, {shape.target_length}) tokens ..."
        )
        times = _UpdateTimes()
        model.fit(
            [source[first_steps[shape]]] * UPDATES_PER_SHAPE,
            shuffle=False,
            verbose=0,
            callbacks=[times],
        )
        first, *others = times.seconds
        measured.append(MeasuredShape(shape, first, statistics.median(others)))
    return tuple(measured)


def mean_seconds(plan: BatchPlan, measured: Sequence[MeasuredShape]) -> float:
    """Estimates the mean time of an update over the batches of an epoch.

    A shape that was not measured takes the time of the measured ones per
    token, padding included.
    """
    known = {one.batch_shape: one.seconds for one in measured}
    tokens = sum(shape.num_tokens for shape in known)
    per_token = sum(known.values()) / tokens
    seconds = [
        batches * known.get(shape, per_token * shape.num_tokens)
        for shape, batches in zip(
            plan.batch_shapes, plan.batches_per_shape, strict=True
        )
    ]
    return sum(seconds) / plan.batches_per_epoch


class _UpdateTimes(keras.callbacks.Callback):
    """Records the time of each update, in seconds."""

    def on_train_begin(self, logs=None):
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self.start = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        # Reading the loss waits for the update.
        float(logs["loss"])
        self.seconds.append(time.monotonic() - self.start)


def state_bytes(model: keras.Model) -> int:
    """Returns the bytes of a model's weights and its optimizer's state."""
    variables = [*model.variables, *model.optimizer.variables]
    return sum(
        int(np.prod(variable.shape))
        * np.dtype(keras.backend.standardize_dtype(variable.dtype)).itemsize
        for variable in variables
    )


def peak_memory() -> tuple[int, str]:
    """Returns the highest use of memory so far, in bytes, and whose it is."""
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            used = tf.config.experimental.get_memory_info("GPU:0")["peak"]
            return used, "the first GPU"
    elif keras.config.backend() == "jax":
        import jax

        statistics_of = jax.devices()[0].memory_stats() or {}
        if "peak_bytes_in_use" in statistics_of:
            return statistics_of["peak_bytes_in_use"], "the first accelerator"
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return used, "this process, with its libraries"
