"""Does what a run does before its first update, and measures some updates."""

import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np

from keras_deepnmt.data.manifest import MANIFEST_FILE
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.batch_size.search import find_batch, with_parts
from keras_deepnmt.runs.build import plan_batches
from keras_deepnmt.runs.dry_run.measuring import (
    mean_seconds,
    measure_updates,
    peak_memory,
    state_bytes,
)
from keras_deepnmt.runs.dry_run.result import DryRun
from keras_deepnmt.runs.objective_options import check_objective
from keras_deepnmt.runs.preset_folder.fine_tuning import fine_tune
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import (
    copy_initial_weights,
    open_data,
    resolve,
    take_prepared_data,
)
from keras_deepnmt.runs.train import (
    build_for_training,
    check_preset,
    describe_run,
)
from keras_deepnmt.runs.training_loop import TrainingLoop
from keras_deepnmt.training.strategies import Workers, make_strategy


def dry_run(
    recipe: Recipe,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    from_preset: str | Path | None = None,
    quiet: bool = False,
) -> DryRun:
    """Does what `train` does before its first update, and measures updates.

    Nothing is written into `run_dir`. Without a prepared folder, the corpora
    are prepared in a temporary folder, unless `run_dir` has them already.

    Args:
        recipe: the recipe.
        run_dir: the run folder of the real run; if it exists, it is checked
            that it may be continued with this recipe.
        data_dir: folder with copies of named corpora.
        prepared_dir: a prepared folder to use.
        from_preset: a preset folder to fine-tune.
        quiet: whether no progress is shown.

    Returns:
        The sizes, the memory and the times.

    Raises:
        UserError: if `train` would raise it before its first update, or the
            strategy is `multi_worker`.

    Example:
    >>> from keras_deepnmt.recipes import load_recipe
    >>> dry_run(load_recipe("my.yaml"), "runs/mine", quiet=True).steps
    20000
    """

    def say(text):
        if not quiet:
            print(text, file=sys.stderr, flush=True)

    _check_strategy(recipe)
    check_preset(recipe)
    if prepared_dir is not None:
        recipe = take_prepared_data(recipe, prepared_dir, say)
    has_prepared = prepared_dir is not None
    recipe = fine_tune(recipe, run_dir, from_preset, has_prepared)
    check_objective(recipe)
    existing = RunFolder(run_dir)
    recipe = existing.with_max_shapes(recipe)
    if existing.directory.is_dir():
        existing.check_startable(recipe, has_prepared=has_prepared)
    is_prepared = (existing.data_dir / MANIFEST_FILE).is_file()
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(folder)

        def open_prepared():
            # Data that the run has prepared are used, or refused, as they are.
            place = existing if is_prepared else run
            return open_data(recipe, place, data_dir, prepared_dir, quiet)

        return _start_and_measure(recipe, run, open_prepared, say)


def _check_strategy(recipe):
    if recipe.training.strategy == "multi_worker":
        raise UserError(
            "a dry run is made by one process. Received: `training.strategy: "
            "multi_worker`. Add --set training.strategy=mirrored, which "
            "measures one machine."
        )


def _start_and_measure(recipe, run, open_prepared, say):
    """Makes the dry run in a temporary run folder."""
    training = recipe.training
    strategy = None
    if training.batch_tokens != "auto":  # in the order of `train`
        strategy = make_strategy(training.strategy, training.replicas)
    data = open_prepared()
    batch = find_batch(recipe, None, data, say)
    resolved = resolve(recipe, run, data, batch, None)
    recipe = dataclasses.replace(recipe, resolved=resolved)
    if strategy is None:
        strategy = make_strategy(training.strategy, training.replicas)
    if batch is not None:
        recipe = with_parts(recipe, batch["gradient_accumulation_steps"])
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    model = build_for_training(recipe, data, strategy, say)
    # Checks what the training loop checks, and trains nothing.
    TrainingLoop(recipe, run, data, model, plan, Workers(strategy), quiet=True)
    if training.initialize_from is not None:
        report = copy_initial_weights(
            recipe, run, data, model, resolved["initialize_from"]
        )
        say(f"Initialized: {report.describe()}")
    trained = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    measured = measure_updates(recipe, data, plan, model, say)
    peak_bytes, peak_place = peak_memory()
    return DryRun(
        description=describe_run(recipe, data, plan),
        preset=recipe.model.preset,
        parameters=model.count_params(),
        trained_parameters=trained,
        state_bytes=state_bytes(model),
        peak_bytes=peak_bytes,
        peak_place=peak_place,
        measured=measured,
        num_shapes=len(plan.batch_shapes),
        steps=training.steps,
        seconds_per_update=mean_seconds(plan, measured),
    )
