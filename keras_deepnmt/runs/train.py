"""Trains a recipe into a run folder."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.models.training_step.keras_arguments import (
    check_training_backend,
)
from keras_deepnmt.own_code.loading import own_errors
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.build import build_for_training, plan_batches
from keras_deepnmt.runs.changes import find_changes
from keras_deepnmt.runs.finish import describe_end, finish
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.objective_options import check_objective
from keras_deepnmt.runs.own_callbacks import callback_classes
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import (
    check_same_data,
    join_run,
    open_data,
    record_changes,
    resolve_run,
    settle_recipe,
)
from keras_deepnmt.terminal_text import print_line
from keras_deepnmt.training.strategies import Workers, make_strategy
from keras_deepnmt.xla.cache import (
    describe_unused_cache,
    open_user_cache,
    user_cache_asked_for,
)


def train(
    recipe: Recipe | str | Path,
    run_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    from_preset: str | Path | None = None,
    extend_vocabulary: int | None = None,
    resume: bool = True,
    restart: bool = False,
    allow_changes: bool = False,
    quiet: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Prepares the data, trains, averages checkpoints, writes a run folder.

    Called again on the same folder it resumes at the last good checkpoint and
    ends with the same weights as an uninterrupted run. On a finished run it
    returns at once, unless the recipe has changed: then it trains further, or
    makes the final model and its scores anew. Keys that no update depends on,
    such as `training.validate_every`, may change between two calls. A start
    that is refused leaves the folder as it was; only what teachers translated
    stays.

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
        extend_vocabulary: number of pieces, at most, that each vocabulary of
            the preset folder gets, learned from the training text: its
            characters without a piece, then pairs of pieces. Embeddings of a
            new piece start as the mean of those of the pieces that it was cut
            into before. Defaults to `data.extend_vocabulary` of the recipe,
            which is 0. Not needed to resume the run.
        resume: whether to resume from checkpoints; if false, a folder that has
            any is refused.
        restart: whether to begin again from update 0. The checkpoints, logs
            and scores of the run are deleted; its finished model, if it has
            one, is replaced when the new one is complete. Data prepared in
            the run folder are kept if they are those of the recipe.
        allow_changes: whether keys may change that updates depend on, such as
            `training.learning_rate.peak`. The change holds for the updates
            after the last checkpoint, and is recorded in `recipe.yaml`, in
            `resolved.changes`. Defaults to `False`: it is refused.
        quiet: whether only warnings are shown.
        callbacks: Keras callbacks to call, after those of
            `training.callbacks`. An epoch ends with a validation. With
            several worker processes the chief alone calls them, unless their
            class has `on_every_worker = True`.

    Returns:
        The content of `run.json`: preset, vocabularies, hashes, steps, the
        validation scores of the final model.

    Raises:
        UserError: if the recipe or the data are wrong or not those that the
            folder was started with, its checkpoints are damaged, or what has
            changed would have no effect.
        KeyboardInterrupt: on Ctrl-C, after a checkpoint was saved.

    Example:
    >>> train("my.yaml", "runs/mine")["preset"]
    'transformer_tiny'
    """
    check_training_backend()
    say = functools.partial(_print, quiet)
    folder = RunFolder(run_dir)
    settled = settle_recipe(
        recipe,
        folder,
        prepared_dir=prepared_dir,
        from_preset=from_preset,
        extend_vocabulary=extend_vocabulary,
        restart=restart,
        say=say,
    )
    training = settled.training
    has_prepared = prepared_dir is not None
    with user_cache_asked_for(training.jit_compile):
        finished = not restart and folder.is_finished()
        if finished and not folder.has_whole_model():
            say(
                f"{folder.directory}: the final model is damaged, or was not "
                "written to its end, and is made anew."
            )
            finished = False
        if finished:
            finished = not find_changes(folder.started(), settled, has_prepared)
        if finished and has_prepared:
            check_same_data(folder, prepared_dir)
        if not finished:
            check_objective(settled)
            callback_classes(settled)
        strategy = None
        if training.batch_tokens != "auto":
            # Made before TensorFlow is initialized: logical devices cannot be
            # added later. With `auto` the trials come first, since a strategy
            # would reserve the accelerator's memory.
            strategy = _make_strategy(training, say)
        workers = Workers(strategy)
        if not workers.is_chief:
            with workers.explained_failures():
                return _train_as_worker(
                    settled,
                    folder,
                    prepared_dir,
                    restart,
                    strategy,
                    workers,
                    callbacks,
                )
        folder.check_startable(
            settled, resume, restart, has_prepared, allow_changes
        )
        with folder.opened(), workers.explained_failures(), own_errors():
            if workers.broadcast(finished):
                workers.leave()
                summary = folder.read_summary()
                say(describe_end(folder, summary, training.steps))
                return summary
            data = open_data(
                settled, folder, data_dir, prepared_dir, restart, quiet
            )
            run = resolve_run(settled, folder, data, restart=restart, say=say)
            workers.barrier()
            if strategy is None:
                strategy = _make_strategy(training, say)
            if training.jit_compile:
                _open_cache(say)
            loop = _make_loop(
                run, strategy, workers, quiet, allow_changes, callbacks
            )
            loop.restore(loop.recipe.resolved.get("initialize_from"))
            loop.check_effects()
            loop.make_own_callbacks()
            loop.resolved_run = loop.resolved_run.with_kept_code()
            folder.begin(loop.resolved_run.recorded, data.directory, restart)
            workers.barrier()
            loop.run()
            summary = finish(loop.resolved_run, loop.step, loop.stopped, say)
            say(_describe_result(folder, summary))
            workers.leave()
        return summary


def _make_strategy(training, say):
    if training.strategy == "multi_worker":
        say("Waiting for the other workers of TF_CONFIG ...")
    return make_strategy(training.strategy, training.replicas)


def _open_cache(say):
    open_user_cache(keras.config.backend())
    warning = describe_unused_cache(keras.config.backend())
    if warning:
        say(warning)


def _train_as_worker(
    recipe, folder, prepared_dir, restart, strategy, workers, callbacks
):
    """Takes part in the chief's training and writes no files."""
    if not workers.broadcast(0):
        workers.barrier()
        run = join_run(recipe, folder, prepared_dir, restart)
        # The chief refuses changes.
        loop = _make_loop(run, strategy, workers, True, True, callbacks)
        # The chief has written recipe.yaml and, for a restart, deleted old
        # files.
        workers.barrier()
        loop.restore(folder.recipe().resolved.get("initialize_from"))
        loop.make_own_callbacks()
        loop.run()
    workers.leave()
    return folder.read_summary()


def _make_loop(run, strategy, workers, quiet, allow_changes, callbacks):
    """Builds and compiles the model, and plans its training."""
    say = functools.partial(_print, quiet)
    replicas = strategy.num_replicas_in_sync
    run = record_changes(run, replicas, allow_changes, say)
    plan = plan_batches(run.recipe, run.data, replicas)
    if not quiet:
        say(run.describe(plan))
    model = build_for_training(run.recipe, run.data, strategy, say)
    # Outside of the scope: TensorBoard's callback makes a variable on the
    # chief alone, which all workers would wait for.
    return TrainingLoop(run, model, plan, workers, quiet, callbacks)


def _describe_result(folder, summary):
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
    best = folder.checkpoints().best()
    if best is not None:
        lines.append(
            f"The best validation was that of update {best.step}, "
            f"{best.metric} {best.value:.4g}; its checkpoint is {best.path}."
        )
    return "\n".join([f"The final model is {final}.", *lines])


def _print(quiet, text):
    if not quiet:
        print_line(text)
