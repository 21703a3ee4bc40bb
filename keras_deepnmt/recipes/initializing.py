"""Begins a run with the weights of another one."""

from pathlib import Path

import keras

from keras_deepnmt.data.manifest import file_sha256
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.building import build_model
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.checkpoint_files import WEIGHTS_FILE
from keras_deepnmt.training.shared_weights import (
    SharedWeights,
    copy_shared_weights,
)


def find_source(recipe: Recipe, data: PreparedData) -> dict[str, str]:
    """Finds the weights that a recipe begins with.

    A finished run gives its final model, another one the weights of its newest
    undamaged checkpoint.

    Args:
        recipe: a recipe with `training.initialize_from`.
        data: its corpus.

    Returns:
        Dict `{"run", "weights", "weights_sha256"}`: the other run's name, the
        file of its weights and that file's hash.

    Raises:
        UserError: if the folder is no run, has no weights yet, or has other
            tokenizers.
    """
    run = RunFolder(recipe.training.initialize_from)
    try:
        source = run.recipe()
    except UserError as error:
        raise UserError(
            f"recipe {recipe.name}, `training.initialize_from`: {error}"
        ) from error
    if source.resolved.get("tokenizer") != dict(data.manifest["tokenizer"]):
        raise UserError(
            f"{run.directory}: its tokenizers are not those of "
            f"{data.directory}, so the same id is another word. Give "
            "`training.initialize_from` a run on the same prepared data."
        )
    if run.run_file.is_file():
        file = run.model_dir / WEIGHTS_FILE
    else:
        step = run.checkpoints().latest()
        if step is None:
            raise UserError(
                f"{run.directory}: this run has no weights yet. Train it first."
            )
        file = run.checkpoints().path(step) / WEIGHTS_FILE
    return {
        "run": source.name,
        "weights": str(file.resolve()),
        "weights_sha256": file_sha256(file),
    }


def initialize(
    recipe: Recipe, run: RunFolder, data: PreparedData, model: keras.Model
) -> SharedWeights:
    """Copies the weights that a model shares with the run it begins with.

    Args:
        recipe: a recipe with `training.initialize_from`.
        run: the new run's folder, whose `recipe.yaml` says which weights.
        data: the corpus of both.
        model: the new run's model.

    Returns:
        What was copied and what was not.

    Raises:
        UserError: if the weights are no longer those that the run was started
            with, or nothing is shared.
    """
    folder = Path(recipe.training.initialize_from)
    recorded = run.recipe().resolved["initialize_from"]
    file = Path(recorded["weights"])
    if not file.is_file() or file_sha256(file) != recorded["weights_sha256"]:
        raise UserError(
            f"{folder}: its weights are no longer those that "
            f"{run.directory} was started with. Use another run folder."
        )
    source = build_model(RunFolder(folder).recipe(), data.manifest)
    source.load_weights(file)
    report = copy_shared_weights(source, model)
    if not report.shared:
        raise UserError(
            f"{folder}: shares no weight with this recipe's model. Leave "
            "`training.initialize_from` out."
        )
    return report
