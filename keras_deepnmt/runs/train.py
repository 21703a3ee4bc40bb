"""Trains a recipe into a run folder."""

import dataclasses
import logging
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import fine_tuned_model, load_recipe
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.batch_size import find_batch, with_parts
from keras_deepnmt.runs.build import (
    build_model,
    compile_model,
    describe_long_pairs,
    plan_batches,
)
from keras_deepnmt.runs.fine_tuning import fine_tune
from keras_deepnmt.runs.finish import finish
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.objective_options import (
    check_objective,
    compile_options,
    describe_sampling,
)
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import open_data, resolve, take_prepared_data
from keras_deepnmt.training.strategies import Workers, make_strategy
from keras_deepnmt.xla.cache import (
    describe_unused_cache,
    open_user_cache,
    user_cache_asked_for,
)
from keras_deepnmt.zoo.registry import get_preset

_logger = logging.getLogger(__name__)


def train(
    recipe: Recipe | str | Path,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    from_preset: str | Path | None = None,
    resume: bool = True,
    restart: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Prepares the data, trains, averages checkpoints, writes a run folder.

    Called again on the same folder it resumes at the last good checkpoint and
    ends with the same weights as an uninterrupted run. On a finished run it
    returns at once, unless `training.steps` has changed: then it trains
    further. A start that is refused leaves the folder as it was.

    Args:
        recipe: a recipe, its name or its file.
        run_dir: the run folder.
        data_dir: folder with copies of named corpora.
        prepared_dir: a prepared folder to use. The run records the data that
            it was prepared with instead of the recipe's. Otherwise the
            recipe's data are prepared into `run_dir/data`.
        from_preset: a preset folder to fine-tune: the run has its model and
            starts with its weights; the data are prepared with its tokenizers,
            or `prepared_dir` must have them. A recipe without the section
            `model` has that of the folder. Not needed to resume the run.
        resume: whether to resume from checkpoints; if false, a folder that has
            any is refused.
        restart: whether to begin again from update 0. The checkpoints, logs
            and scores of the run are deleted; its finished model, if it has
            one, is replaced when the new one is complete. Data prepared in
            the run folder are kept if they are those of the recipe.
        quiet: whether only warnings are shown.

    Returns:
        The content of `run.json`: preset, vocabularies, hashes, steps, the
        validation scores of the final model.

    Raises:
        UserError: if the recipe or the data are wrong or not those that the
            folder was started with, or its checkpoints are damaged.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was saved.

    Example:
    >>> train("my.yaml", "runs/mine")["preset"]
    'transformer_tiny'
    """
    if not isinstance(recipe, Recipe):
        model = fine_tuned_model(run_dir, from_preset, restart)
        recipe = load_recipe(recipe, prepared_dir=prepared_dir, model=model)
    check_preset(recipe)
    if prepared_dir is not None:
        recipe = take_prepared_data(
            recipe, prepared_dir, lambda text: _print(quiet, text)
        )
    recipe = fine_tune(
        recipe, run_dir, from_preset, prepared_dir is not None, restart
    )
    with user_cache_asked_for(recipe.training.jit_compile):
        return _train(
            recipe,
            RunFolder(run_dir),
            data_dir,
            prepared_dir,
            resume,
            restart,
            quiet,
        )


def _train(recipe, run, data_dir, prepared_dir, resume, restart, quiet):
    training = recipe.training
    if restart or not run.is_finished():
        check_objective(recipe)
    strategy = None
    if training.batch_tokens != "auto":
        # Made before TensorFlow is initialized: logical devices cannot be
        # added later. With `auto` the trials come first, since a strategy
        # would reserve the accelerator's memory.
        strategy = _make_strategy(training, quiet)
    workers = Workers(strategy)
    if not workers.is_chief:
        return _train_as_worker(
            recipe, run, prepared_dir, strategy, workers, restart
        )
    recipe = run.with_max_shapes(recipe, restart)
    has_prepared = prepared_dir is not None
    run.check_startable(recipe, resume, restart, has_prepared)
    with run.opened():
        recorded, finished = None, run.is_finished() and not restart
        if run.recipe_file.is_file() and not restart:
            started = run.recipe()
            recorded = started.resolved
            finished &= started.training.steps == training.steps
        if workers.broadcast(finished):
            _print(quiet, f"{run.directory}: this run is finished.")
            return run.read_summary()
        data = open_data(recipe, run, data_dir, prepared_dir, quiet, restart)
        batch = find_batch(
            recipe, recorded, data, lambda text: _print(quiet, text)
        )
        resolved = resolve(recipe, run, data, batch, recorded)
        recipe = dataclasses.replace(recipe, resolved=resolved)
        workers.barrier()
        if strategy is None:
            strategy = _make_strategy(training, quiet)
        parts = recipe
        if batch is not None:
            parts = with_parts(recipe, batch["gradient_accumulation_steps"])
        if training.jit_compile:
            open_user_cache(keras.config.backend())
            warning = describe_unused_cache(keras.config.backend())
            _print(quiet or not warning, warning)
        loop = _make_loop(parts, run, data, strategy, workers, quiet)
        loop.restore(resolved, restart)
        run.begin(recipe, resolved, data.directory, restart)
        workers.barrier()
        loop.run()
        summary = finish(
            parts,
            run,
            data,
            loop.step,
            lambda text: _print(quiet, text),
        )
        _print(quiet, _describe_result(run, summary))
        workers.barrier()
    return summary


def _make_strategy(training, quiet):
    if training.strategy == "multi_worker":
        _print(quiet, "Waiting for the other workers of TF_CONFIG ...")
    return make_strategy(training.strategy, training.replicas)


def _train_as_worker(recipe, run, prepared_dir, strategy, workers, restart):
    """Takes part in the chief's training and writes no files."""
    if not workers.broadcast(0):
        workers.barrier()
        try:
            data = PreparedData(prepared_dir or run.data_dir)
        except UserError as error:
            raise UserError(
                f"{error} The run folder and the prepared folder must be on a "
                "file system that all workers read."
            ) from error
        recipe = run.with_max_shapes(recipe, restart)
        if run.recipe_file.is_file() and not restart:
            resolved = run.recipe().resolved
            recipe = dataclasses.replace(recipe, resolved=resolved)
        loop = _make_loop(recipe, run, data, strategy, workers, quiet=True)
        # The chief has written recipe.yaml and deleted what a restart deletes.
        workers.barrier()
        loop.restore(run.recipe().resolved)
        loop.run()
        workers.barrier()
    return run.read_summary()


def _make_loop(recipe, run, data, strategy, workers, quiet):
    """Builds and compiles the model, and plans its training."""
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    if not quiet:
        _print(quiet, describe_run(recipe, data, plan))
    model = build_for_training(
        recipe, data, strategy, lambda text: _print(quiet, text)
    )
    # Outside of the scope: TensorBoard's callback makes a variable on the
    # chief alone, which all workers would wait for.
    return TrainingLoop(recipe, run, data, model, plan, workers, quiet)


def build_for_training(
    recipe: Recipe,
    data: PreparedData,
    strategy: Any,
    say: Callable[[str], None],
) -> keras.Model:
    """Builds and compiles the model of a recipe in the strategy's scope.

    `say` prints what does not train. Warnings are logged.

    Raises:
        UserError: if the model or the objective refuses an option.
    """
    keras.utils.set_random_seed(recipe.seed)
    with strategy.scope():
        model = build_model(recipe, data.manifest)
        frozen = compile_model(recipe, model, **compile_options(recipe, data))
    if frozen:
        say(_describe_frozen(model, frozen))
    for warning in describe_long_pairs(model, data):
        _logger.warning(warning)
    return model


def check_preset(recipe: Recipe) -> None:
    """Raises a `UserError` if the preset of a recipe does not exist."""
    try:
        get_preset(recipe.model.preset)
    except ValueError as error:
        raise UserError(
            f"recipe {recipe.name}, `model.preset`: {error}"
        ) from error


def describe_run(recipe: Recipe, data: PreparedData, plan: BatchPlan) -> str:
    """Describes in several lines the data and the batches of a run."""
    target_tokens = int(data.store("train").lengths[:, 1].sum())
    tokens = target_tokens / plan.batches_per_epoch
    epochs = recipe.training.steps / plan.batches_per_epoch
    return "\n".join(
        [
            describe_manifest(data.manifest),
            plan.describe(),
            f"{recipe.training.steps:,} updates of {tokens:,.0f} target tokens "
            f"on average, {epochs:.1f} epochs.",
            *describe_sampling(recipe, data, plan),
        ]
    )


def _describe_frozen(model, frozen):
    all_parameters = model.count_params()
    frozen_parameters = all_parameters - sum(
        math.prod(v.shape) for v in model.trainable_variables
    )
    return (
        f"{len(frozen)} weights are frozen: {frozen_parameters:,} of "
        f"{all_parameters:,} parameters do not train."
    )


def _describe_result(run, summary):
    steps = summary["averaged_steps"]
    final = (
        f"the checkpoint of update {steps[0]}"
        if len(steps) == 1
        else f"the mean of {len(steps)} checkpoints, of updates "
        f"{', '.join(map(str, steps))}"
    )
    lines = [
        f"valid {name} {score['value']:.2f} ({score['signature']})"
        for name, score in summary["valid"].items()
    ]
    best = run.checkpoints().best()
    if best is not None:
        lines.append(
            f"The best validation was that of update {best.step}, "
            f"{best.metric} {best.value:.4g}; its checkpoint is {best.path}."
        )
    return "\n".join([f"The final model is {final}.", *lines])


def _print(quiet, text):
    if not quiet:
        print(text, file=sys.stderr, flush=True)
