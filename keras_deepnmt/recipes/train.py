"""From a recipe to a trained run folder."""

import math
import sys
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.batch_search import find_batch, with_parts
from keras_deepnmt.recipes.building import (
    build_model,
    compile_model,
    plan_batches,
)
from keras_deepnmt.recipes.compilation_cache import (
    cache_asked_for,
    open_cache,
)
from keras_deepnmt.recipes.finishing import finish
from keras_deepnmt.recipes.fitting import Fit
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.recipes.recording import prepared_data, record
from keras_deepnmt.recipes.robust_training import (
    compile_options,
    describe_sampling,
    read_teacher,
)
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.strategies import make_strategy
from keras_deepnmt.training.workers import Workers
from keras_deepnmt.zoo.registry import get_preset


def train(
    recipe: Recipe | str | Path,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    resume: bool = True,
    quiet: bool = False,
) -> dict[str, Any]:
    """Prepares the data, trains, averages, and writes a run folder.

    Called again on the same folder it goes on from the last good checkpoint,
    as if it had never stopped; on a finished one it returns at once, unless
    the recipe's `training.steps` has changed: then it trains further.

    Args:
        recipe: a recipe, its name or its file.
        run_dir: the run's folder.
        data_dir: folder with copies of named corpora.
        prepared_dir: a prepared folder to use; otherwise the recipe's data are
            prepared into `run_dir/data`.
        resume: whether to go on from checkpoints; if false, a folder that has
            any is refused.
        quiet: shows nothing.

    Returns:
        What `run.json` holds: preset, vocabularies, hashes, steps, the
        validation scores of the final model.

    Raises:
        UserError: if the recipe is wrong, or belongs to another run than the
            folder's.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was saved.

    Example:
    >>> train("transformer_tiny.demo_de_en", "runs/demo")["preset"]
    'transformer_tiny'
    """
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe)
    _check_preset(recipe)
    with cache_asked_for(run_dir, recipe.training.jit_compile):
        return _train(
            recipe, RunFolder(run_dir), data_dir, prepared_dir, resume, quiet
        )


def _train(recipe, run, data_dir, prepared_dir, resume, quiet):
    training = recipe.training
    if not run.run_file.is_file():
        read_teacher(recipe)
    strategy = None
    if training.batch_tokens != "auto":
        # Before anything starts TensorFlow: its devices cannot be divided
        # later. Trials come before, since it keeps an accelerator's memory.
        strategy = _strategy(training, quiet)
    workers = Workers(strategy)
    if not workers.is_chief:
        return _help(recipe, run, prepared_dir, strategy, workers)
    run.claim(recipe, resume)
    with run.alone():
        if run.recipe_file.is_file():
            run.reopen(recipe)
        if workers.say(run.run_file.is_file()):
            _say(quiet, f"{run.directory}: this run is finished.")
            return run.run()
        data = prepared_data(recipe, run, data_dir, prepared_dir, quiet)
        found = find_batch(recipe, run, data, lambda text: _say(quiet, text))
        record(recipe, run, data, found)
        workers.wait()
        if strategy is None:
            strategy = _strategy(training, quiet)
        if found is not None:
            recipe = with_parts(recipe, found["gradient_accumulation_steps"])
        if training.jit_compile:
            late = open_cache(run.directory, keras.config.backend())
            _say(quiet or not late, late)
        step = _fit(recipe, run, data, strategy, workers, quiet)
        content = finish(recipe, run, data, step)
        _say(quiet or not content["valid"], _describe_scores(content))
        workers.wait()
    return content


def _strategy(training, quiet):
    if training.strategy == "multi_worker":
        _say(quiet, "Waiting for the other workers of TF_CONFIG ...")
    return make_strategy(training.strategy, training.replicas)


def _help(recipe, run, prepared_dir, strategy, workers):
    """Takes part in the chief's training; writes nothing."""
    if not workers.say(0):
        workers.wait()
        try:
            data = PreparedData(prepared_dir or run.data_dir)
        except UserError as error:
            raise UserError(
                f"{error} The run folder and the prepared folder must be on a "
                "file system that all workers read."
            ) from error
        _fit(recipe, run, data, strategy, workers, quiet=True)
        workers.wait()
    return run.run()


def _fit(recipe, run, data, strategy, workers, quiet):
    keras.utils.set_random_seed(recipe.seed)
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    if not quiet:
        _say(quiet, _describe(recipe, data, plan))
    with strategy.scope():
        model = build_model(recipe, data.manifest)
        frozen = compile_model(recipe, model, **compile_options(recipe, data))
    if frozen:
        _say(quiet, _describe_frozen(model, frozen))
    # Outside the scope, where a variable of the chief alone (TensorBoard makes
    # one) would be waited for by all.
    fit = Fit(recipe, run, data, model, plan, workers, quiet)
    fit.go_on()
    return fit.step


def _check_preset(recipe):
    try:
        get_preset(recipe.model.preset)
    except ValueError as error:
        raise UserError(
            f"recipe {recipe.name}, `model.preset`: {error}"
        ) from error


def _describe(recipe, data, plan):
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
    whole = model.count_params()
    still = whole - sum(math.prod(v.shape) for v in model.trainable_variables)
    return (
        f"{len(frozen)} weights are frozen: {still:,} of {whole:,} parameters "
        "do not train."
    )


def _describe_scores(content):
    steps = content["averaged_steps"]
    return "\n".join(
        f"valid {name} {score['value']:.2f} ({score['signature']}), mean "
        f"of {len(steps)} checkpoints"
        for name, score in content["valid"].items()
    )


def _say(quiet, text):
    if not quiet:
        print(text, file=sys.stderr, flush=True)
