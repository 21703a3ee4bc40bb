"""Starts a run: its data, its recorded recipe and its initial weights."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import keras

from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.recipes.loading import (
    flatten_recipe,
    save_recipe,
    with_prepared_data,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.build import build_model
from keras_deepnmt.runs.objective_options import read_teacher
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.transfer import (
    SharedWeights,
    copy_shared_weights,
)
from keras_deepnmt.zoo.registry import PRESET_VERSION


def take_prepared_data(
    recipe: Recipe, prepared_dir: str | Path, say: Callable[[str], None]
) -> Recipe:
    """Returns the recipe with the data that the folder was prepared with.

    `say` prints a line if those of the recipe are others.

    Raises:
        UserError: if it is no prepared folder.
    """
    prepared = with_prepared_data(recipe, prepared_dir)
    given, used = flatten_recipe(recipe), flatten_recipe(prepared)
    keys = [
        key
        for key in {**given, **used}
        if key.startswith("data.") and given.get(key) != used.get(key)
    ]
    if keys:
        say(
            f"{prepared_dir}: was prepared with other values than the recipe's "
            f"of {', '.join(keys)}; its own are used and recorded."
        )
    return prepared


def open_data(
    recipe: Recipe,
    run: RunFolder,
    data_dir: str | Path | None,
    prepared_dir: str | Path | None,
    quiet: bool,
) -> PreparedData:
    """Opens the prepared corpus of a run.

    Without `prepared_dir` the recipe's corpora are prepared into the run
    folder first; `data_dir` is a folder with copies of named corpora.
    """
    if prepared_dir is None:
        prepare_corpus(
            recipe.data, run.data_dir, data_dir=data_dir, progress=not quiet
        )
        prepared_dir = run.data_dir
    return PreparedData(prepared_dir)


def record_recipe(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    batch: dict[str, int] | None,
) -> None:
    """Writes `recipe.yaml` with hashes and versions, or checks it on a resume.

    `batch` is what `batch_size.search.find_batch` returned.

    Raises:
        UserError: if the run was started with other tokenizers or another
            teacher.
    """
    resolved = {
        "prepared": str(data.directory.resolve()),
        "manifest_sha256": file_sha256(data.directory / "manifest.json"),
        "tokenizer": dict(data.manifest["tokenizer"]),
        "corpora": data.manifest["corpora"],
        "preset_version": PRESET_VERSION,
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    teacher = read_teacher(recipe)
    if teacher is not None:
        resolved["teacher_sha256"] = teacher.weights_sha256
    if batch is not None:
        resolved["batch"] = batch
    if run.recipe_file.is_file():
        _check_unchanged(run, data, teacher, resolved)
        recorded = run.recipe()
        if recorded.data != recipe.data:
            # Older versions recorded the recipe's data instead of those used.
            save_recipe(recipe, run.recipe_file, recorded.resolved)
        return
    if recipe.training.initialize_from is not None:
        resolved["initialize_from"] = find_initial_weights(recipe, data)
    run.copy_tokenizers(data.directory)
    save_recipe(recipe, run.recipe_file, resolved)


def with_recorded(recipe: Recipe, run: RunFolder) -> Recipe:
    """Returns a recipe with what its run folder has recorded at the start."""
    return dataclasses.replace(recipe, resolved=run.recipe().resolved)


def _check_unchanged(run, data, teacher, resolved):
    recorded = run.recipe().resolved
    tokenizer = recorded.get("tokenizer")
    if tokenizer and tokenizer != resolved["tokenizer"]:
        raise UserError(
            f"{data.directory}: its tokenizers are not those "
            f"{run.recipe_file} was started with. Use that data, or "
            "another run folder."
        )
    if recorded.get("teacher_sha256") != resolved.get("teacher_sha256"):
        raise UserError(
            f"{teacher.directory}: its weights are not those "
            f"{run.recipe_file} was started with. Use that teacher, or "
            "another run folder."
        )


def find_initial_weights(recipe: Recipe, data: PreparedData) -> dict[str, str]:
    """Finds the weights that `training.initialize_from` names.

    A finished run gives its final model, an unfinished one the weights of its
    newest undamaged checkpoint.

    Returns:
        Dict `{"run", "weights", "weights_sha256"}`: the other run's name, the
        file of its weights and that file's hash.

    Raises:
        UserError: if the folder is not a run folder, has no weights yet, or
            has other tokenizers.
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
            f"{data.directory}, so the same id stands for another subword. "
            "Give `training.initialize_from` a run on the same prepared data."
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


def copy_initial_weights(
    recipe: Recipe, run: RunFolder, data: PreparedData, model: keras.Model
) -> SharedWeights:
    """Copies the weights that `model` shares with `training.initialize_from`.

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
