"""From a checkpoint of a run to its model: chosen, loaded, and averaged."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.tags import tags_of_corpora
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    DISK_FULL,
    WEIGHTS_FILE,
    file_sha256,
    working_folder,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.build import build_model, make_optimizer
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoint_files import checkpoint_fault
from keras_deepnmt.training.transfer import trained_weights
from keras_deepnmt.training.weight_average import load_averages
from keras_deepnmt.translator.loading import (
    Run,
    check_run_folder,
    read_run,
)
from keras_deepnmt.weights_files import load_weights

_logger = logging.getLogger(__name__)

LATEST, BEST = "latest", "best"


def choose_checkpoint(
    run: RunFolder, checkpoint: str | int
) -> tuple[int, Path]:
    """Returns the step and the folder of the requested checkpoint.

    `checkpoint` is `"latest"`, the number of a step, or `"best"`: the one of
    the run's best validation by the recipe's `training.early_stopping_metric`.
    """
    store = run.checkpoints()
    if checkpoint == BEST:
        best = store.best()
        if best is None:
            raise UserError(
                f"{store.directory}: holds no checkpoint of a best validation. "
                f"{_describe_steps(store.steps())}"
            )
        step, folder = best.step, best.path
    elif checkpoint == LATEST:
        step = store.latest()
        if step is None:
            raise UserError(
                f"{store.directory}: holds no undamaged checkpoint. Train "
                "further."
            )
        return step, store.path(step)
    elif not str(checkpoint).isdecimal():
        raise UserError(
            "`checkpoint` must be latest, best or the number of a step. "
            f"Received: {checkpoint}"
        )
    else:
        step = int(checkpoint)
        folder = store.path(step)
        if step not in store.steps():
            raise UserError(
                f"{store.directory}: holds no checkpoint of step {step}. "
                f"{_describe_steps(store.steps())}"
            )
    if fault := checkpoint_fault(folder):
        raise UserError(f"{fault} {_describe_steps(store.steps())}")
    return step, folder


def _describe_steps(steps):
    if not steps:
        return "There is no checkpoint. Train further."
    return f"Take one of {', '.join(map(str, steps))}, or latest."


def load_model(
    run_dir: str | Path, checkpoint: str | int | None = None
) -> keras.Model:
    """Loads the model of a run or preset folder, built once and not compiled.

    `checkpoint` is as in `choose_checkpoint`; its model has the weights that
    validation used: the moving average if the recipe keeps one. `None` is the
    final model of a finished run.
    """
    return open_run(run_dir, checkpoint).load_model()


def open_run(run_dir: str | Path, checkpoint: str | int | None = None) -> Run:
    """Reads a run without its weights, which `Run.load_model` loads.

    The arguments are those of `load_model`. The tokenizers must be those of the
    run.
    """
    if checkpoint is None:
        return read_run(run_dir)
    folder = RunFolder.find(run_dir)
    check_run_folder(folder.directory)
    recipe = folder.recipe()
    step, path = choose_checkpoint(folder, checkpoint)
    tokenizers = {
        side: _read_tokenizer(folder, recipe, side)
        for side in ("source", "target")
    }
    decoding = asdict(recipe.decoding)
    summary = {
        "name": recipe.name,
        "preset": recipe.model.preset,
        "overrides": recipe.model.overrides,
        "preset_version": recipe.resolved.get("preset_version"),
        "source_vocabulary_size": tokenizers["source"].vocabulary_size,
        "target_vocabulary_size": tokenizers["target"].vocabulary_size,
        "tokenizer": {side: one.sha256 for side, one in tokenizers.items()},
        "tags": tags_of_corpora(c.tag for c in recipe.data.train),
        "tag_side": recipe.data.tag_side,
        "directions": recipe.data.directions(),
        "context": recipe.data.context,
        "code": recipe.resolved.get("code", []),
        "weights_sha256": file_sha256(path / WEIGHTS_FILE),
        "steps": step,
        "averaged_steps": [step],
        "decoding": decoding,
        "evaluation": asdict(recipe.evaluation),
        "training": folder.describe_speed(until=step),
        "seed": recipe.seed,
    }
    return CheckpointRun(
        folder.directory,
        recipe.model.preset,
        recipe.model.overrides,
        tokenizers["source"],
        tokenizers["target"],
        decoding,
        summary["weights_sha256"],
        summary["preset_version"],
        summary,
        recipe=recipe,
        checkpoint=path,
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointRun(Run):
    """A run with the weights of one checkpoint; it need not be finished.

    Attributes:
        recipe: the run's recipe.
        checkpoint: folder of the checkpoint.
    """

    recipe: Recipe
    checkpoint: Path

    @property
    def file(self) -> Path:
        return RunFolder(self.directory).recipe_file

    @property
    def weights_file(self) -> Path:
        return self.checkpoint / WEIGHTS_FILE

    def load_model(self) -> keras.Model:
        return load_checkpoint(self.recipe, self.summary, self.checkpoint)


def _read_tokenizer(folder, recipe, side):
    file = folder.tokenizer_dir / f"{side}.model"
    tokenizer = Tokenizer(file)
    recorded = recipe.resolved.get("tokenizer", {}).get(side)
    if recorded not in (None, tokenizer.sha256):
        raise UserError(
            f"{file}: not the tokenizer that {folder.recipe_file} was "
            "started with; its SHA-256 must be that in resolved.tokenizer."
        )
    return tokenizer


def build_with_weights(
    recipe: Recipe, sizes: Mapping[str, Any], file: Path
) -> keras.Model:
    """Builds the model of a recipe, not compiled, with the weights of a file.

    `sizes` is that of `build_model`.
    """
    model = build_model(recipe, sizes)
    load_weights(model, file)
    return model


def load_checkpoint(
    recipe: Recipe, sizes: Mapping[str, Any], folder: Path
) -> keras.Model:
    """Builds the model of one checkpoint, not compiled.

    Its weights are the moving average if the recipe keeps one.
    """
    if fault := checkpoint_fault(folder):
        raise UserError(fault)
    model = build_with_weights(recipe, sizes, folder / WEIGHTS_FILE)
    training = recipe.training
    if training.optimizer.average_momentum is not None:
        load_averages(
            folder / WEIGHTS_FILE,
            make_optimizer(training, model),
            trained_weights(model, training.freeze),
        )
    return model


def average_checkpoints(
    recipe: Recipe,
    run: RunFolder,
    sizes: Mapping[str, Any],
    folder: Path,
    **chosen: int,
) -> tuple[keras.Model, list[int]]:
    """Builds the model whose weights are the mean of several checkpoints.

    The mean is written to a temporary file in `folder`. `chosen` is `last=N` or
    `best=N`, see `CheckpointStore.average`. Also returns the steps averaged.
    """
    try:
        with working_folder(folder / "average.weights.h5") as place:
            file = place / "average.weights.h5"
            steps = run.checkpoints().average(file, **chosen)
            model = build_with_weights(recipe, sizes, file)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise UserError(
            f"{run.directory}: the average of the checkpoints could not be "
            f"written ({error.strerror}); the checkpoints are kept. Free some "
            "space and run the same command again."
        ) from error
    return model, steps


def final_model(
    recipe: Recipe, run: RunFolder, sizes: Mapping[str, Any]
) -> tuple[keras.Model, list[int]]:
    """Builds the final model of a run, as `training.final_model` chooses it.

    If the recipe keeps a moving average of the weights, it is that of the
    chosen checkpoint. Also returns the steps of the checkpoints used.
    """
    training, store = recipe.training, run.checkpoints()
    number, bests = training.average_checkpoints, []
    if training.final_model != "average_last":
        number = 1 if training.final_model == "best" else number
        bests = store.bests()[:number]
        if not bests:
            _logger.warning(
                "%s: no validation gave a value, so the last checkpoints "
                "become the final model.",
                run.directory,
            )
    if training.optimizer.average_momentum is None:
        # A short run may have fewer checkpoints than it should average.
        last = min(number, len(store.steps()))
        chosen = {"best": len(bests)} if bests else {"last": last}
        return average_checkpoints(recipe, run, sizes, run.directory, **chosen)
    step = bests[0].step if bests else store.latest()
    if step is None:
        raise UserError(f"{store.directory}: holds no undamaged checkpoint.")
    path = bests[0].path if bests else store.path(step)
    return load_checkpoint(recipe, sizes, path), [step]
