"""Takes the steps of a run before its first update, and measures updates."""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.batch_source import BatchSource
from keras_deepnmt.data.manifest import MANIFEST_FILE
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.batch_trial import largest_batch_shapes
from keras_deepnmt.runs.build import build_for_training, plan_batches
from keras_deepnmt.runs.changes import CHANGES
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.objective_options import (
    batch_transforms,
    check_objective,
)
from keras_deepnmt.runs.own_callbacks import callback_classes
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.stages import training_pairs
from keras_deepnmt.runs.start import (
    open_data,
    record_changes,
    resolve_run,
    settle_recipe,
)
from keras_deepnmt.terminal_text import print_line
from keras_deepnmt.training.strategies import Workers, make_strategy

# The first update of a shape compiles the step; the others are timed.
UPDATES_PER_SHAPE = 4


@dataclass(frozen=True)
class MeasuredShape:
    """The time of the updates of one batch shape.

    Attributes:
        batch_shape: the shape.
        first_seconds: time of the first update, which compiles the step.
        seconds: median time of the others.
    """

    batch_shape: BatchShape
    first_seconds: float
    seconds: float


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run.

    Attributes:
        description: the data and the batch shapes, in several lines.
        preset: name of the model's preset.
        parameters: number of parameters.
        trained_parameters: number of those that train.
        state_bytes: bytes of the weights and the optimizer's state.
        peak_bytes: highest use of memory while training, in bytes.
        peak_place: the device or process that this memory belongs to.
        measured: the batch shapes that were measured.
        num_shapes: number of all batch shapes.
        steps: number of updates of the run.
        seconds_per_update: estimated mean over the batches of an epoch.
    """

    description: str
    preset: str
    parameters: int
    trained_parameters: int
    state_bytes: int
    peak_bytes: int
    peak_place: str
    measured: tuple[MeasuredShape, ...]
    num_shapes: int
    steps: int
    seconds_per_update: float

    @property
    def compile_seconds(self) -> float:
        """Estimated time to compile the step for all batch shapes."""
        times = [
            max(0.0, shape.first_seconds - shape.seconds)
            for shape in self.measured
        ]
        return self.num_shapes * statistics.mean(times)

    def describe(self) -> str:
        """Describes the model, its memory and the time of the run."""
        updates = self.steps * self.seconds_per_update
        frozen = self.parameters - self.trained_parameters
        shapes = [
            f"  {shape.batch_shape.batch_size} x "
            f"({shape.batch_shape.source_length}, "
            f"{shape.batch_shape.target_length}): {shape.seconds:.3f} s, "
            f"the first one {shape.first_seconds:.1f} s"
            for shape in self.measured
        ]
        return "\n".join(
            [
                self.description,
                "",
                f"model {self.preset}: {self.parameters:,} parameters"
                + (f", {frozen:,} of them frozen" if frozen else ""),
                f"memory: {_size(self.state_bytes)} for weights and optimizer; "
                f"{_size(self.peak_bytes)} at the peak of {self.peak_place}, "
                "measured while training on the largest batches",
                f"time per update: {self.seconds_per_update:.3f} s on average, "
                f"estimated from {UPDATES_PER_SHAPE} updates of each of "
                f"{len(self.measured)} of {self.num_shapes} batch shapes "
                "(sentences x (source, target) tokens):",
                *shapes,
                f"time in all: about {_duration(updates)} for {self.steps:,} "
                f"updates and {_duration(self.compile_seconds)} to compile "
                f"all batch shapes ({self.num_shapes}) one after another, less "
                "where several are compiled at a time or kept from an earlier "
                "run; validation and checkpoints are not counted",
            ]
        )


def dry_run(
    recipe: Recipe,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    from_preset: str | Path | None = None,
    extend_vocabulary: int | None = None,
    restart: bool = False,
    allow_changes: bool = False,
    quiet: bool = False,
) -> DryRun:
    """Takes the steps of `train` before its first update, measures updates.

    Nothing is written into `run_dir`. Without a prepared folder, the corpora
    are prepared in a temporary folder, unless `run_dir` has them already. The
    arguments are those of `train`. Callbacks of your own are found, but not
    made, since they may open a log: their arguments are not checked. The
    strategy `multi_worker` is refused.
    """

    def say(text):
        if not quiet:
            print_line(text)

    _check_strategy(recipe)
    existing = RunFolder(run_dir)
    settled = settle_recipe(
        recipe,
        existing,
        prepared_dir=prepared_dir,
        from_preset=from_preset,
        extend_vocabulary=extend_vocabulary,
        restart=restart,
        say=say,
    )
    check_objective(settled)
    callback_classes(settled)
    if existing.directory.is_dir():
        existing.check_startable(
            settled,
            restart=restart,
            has_prepared=prepared_dir is not None,
            allow_changes=allow_changes,
        )
    training = settled.training
    with tempfile.TemporaryDirectory() as temporary:
        folder = RunFolder(temporary)
        strategy = None
        if training.batch_tokens != "auto":  # in the order of `train`
            strategy = make_strategy(training.strategy, training.replicas)
        # Data that the run has prepared are used, or refused, as they are.
        manifest = existing.data_dir / MANIFEST_FILE
        is_prepared = manifest.is_file() and not restart
        place = existing if is_prepared else folder
        data = open_data(
            settled,
            place,
            data_dir,
            prepared_dir,
            quiet=quiet,
            translations=existing.translations_dir,
            may_translate=False,
        )
        if existing.recipe_file.is_file():
            folder = existing
        run = resolve_run(settled, folder, data, restart=restart, say=say)
        if strategy is None:
            strategy = make_strategy(training.strategy, training.replicas)
        replicas = strategy.num_replicas_in_sync
        run = record_changes(run, replicas, allow_changes, say)
        return _start_and_measure(run, strategy, quiet, say)


def _check_strategy(recipe):
    if recipe.training.strategy == "multi_worker":
        raise UserError(
            "a dry run is made by one process. Received: `training.strategy: "
            "multi_worker`. Add --set training.strategy=mirrored, which "
            "measures one machine."
        )


def _start_and_measure(run, strategy, quiet, say):
    """Makes the dry run; nothing is written into the run folder."""
    # The batches that are to come, from their first epoch on.
    resolved = {k: v for k, v in run.recipe.resolved.items() if k != CHANGES}
    recipe, data = run.with_resolved(resolved).recipe, run.data
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    model = build_for_training(recipe, data, strategy, say)
    # Makes the checks of the training loop, and trains nothing.
    loop = TrainingLoop(run, model, plan, Workers(strategy), quiet)
    loop.restore(recipe.resolved.get("initialize_from"))
    loop.check_effects()
    trained = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    measured = measure_updates(recipe, data, plan, model, say)
    peak_bytes, peak_place = peak_memory()
    return DryRun(
        description=run.describe(plan),
        preset=recipe.model.preset,
        parameters=model.count_params(),
        trained_parameters=trained,
        state_bytes=state_bytes(model),
        peak_bytes=peak_bytes,
        peak_place=peak_place,
        measured=measured,
        num_shapes=len(plan.batch_shapes),
        steps=recipe.training.steps,
        seconds_per_update=mean_seconds(plan, measured),
    )


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
    pairs = training_pairs(recipe, data)
    source = BatchSource(
        pairs, plan, transforms=batch_transforms(recipe, data, pairs, plan)
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


def _size(number):
    for unit in ("KiB", "MiB"):
        number /= 1024
        if number < 1000:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} GiB"


def _duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
