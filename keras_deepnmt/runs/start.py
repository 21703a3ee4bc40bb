"""Starts a run: its data, its recorded recipe and its initial weights."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.batches.batch_shapes import BATCH_SHAPES_VERSION
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.recipes.loading import flatten_recipe, with_prepared_data
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.build import build_model, compile_model
from keras_deepnmt.runs.objective_options import read_teacher
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.transfer import (
    SharedWeights,
    copy_shared_weights,
)
from keras_deepnmt.translator.loading import is_preset_folder, read_run
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


SIDES = ("source", "target")


def open_data(
    recipe: Recipe,
    run: RunFolder,
    data_dir: str | Path | None,
    prepared_dir: str | Path | None,
    quiet: bool,
    restart: bool = False,
) -> PreparedData:
    """Opens the prepared corpus of a run.

    Without `prepared_dir` the recipe's corpora are prepared into the run
    folder first; `data_dir` is a folder with copies of named corpora. With
    `restart` other data that were prepared there are replaced.
    """
    if prepared_dir is None:
        if not run.data_dir.exists():
            # Preparing may take hours: what can be refused now is not refused
            # after it.
            sizes = {f"{side}_vocabulary_size": 11 for side in SIDES}
            compile_model(recipe, build_model(recipe, sizes))
        _prepare(recipe, run, data_dir, restart, quiet)
        prepared_dir = run.data_dir
    return PreparedData(prepared_dir)


def _prepare(recipe, run, data_dir, restart, quiet):
    """Prepares into the run folder; a restart may replace what is there."""

    def prepare(overwrite):
        prepare_corpus(
            recipe.data,
            run.data_dir,
            data_dir=data_dir,
            overwrite=overwrite,
            progress=not quiet,
        )

    try:
        prepare(overwrite=False)
    except UserError:
        if not restart:
            raise
        prepare(overwrite=True)


def resolve(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    batch: dict[str, int] | None,
    recorded: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Returns the hashes and versions that `recipe.yaml` records.

    `batch` is what `batch_size.find_batch` returned. On a resume
    `recorded` is what was recorded at the start; it is checked and returned.

    Raises:
        UserError: if the run was started with other data, other tokenizers or
            another teacher.
    """
    resolved = {
        "prepared": str(data.directory.resolve()),
        "manifest_sha256": file_sha256(data.directory / "manifest.json"),
        "tokenizer": dict(data.manifest["tokenizer"]),
        "corpora": data.manifest["corpora"],
        "preset_version": PRESET_VERSION,
        "batch_shapes_version": BATCH_SHAPES_VERSION,
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    teacher = read_teacher(recipe)
    if teacher is not None:
        resolved["teacher_sha256"] = teacher.weights_sha256
    if batch is not None:
        resolved["batch"] = batch
    if recorded is not None:
        _check_unchanged(run, data, teacher, resolved, recorded)
        return dict(recorded)
    if recipe.training.initialize_from is not None:
        resolved["initialize_from"] = find_initial_weights(recipe, data)
    if "from_preset" in recipe.resolved:
        # What `fine_tuning.fine_tune` has put there.
        for name in ("from_preset", "preset_version"):
            resolved[name] = recipe.resolved[name]
    return resolved


def _check_unchanged(run, data, teacher, resolved, recorded):
    for key, what in (
        ("tokenizer", "tokenizers"),
        ("manifest_sha256", "prepared data"),
    ):
        if recorded.get(key) and recorded[key] != resolved[key]:
            before = recorded.get("prepared", "another folder")
            raise UserError(
                f"{data.directory}: holds other {what} than those that "
                f"{run.directory} was started with, in {before}. Use those, "
                "another run folder, or `--restart` to begin again."
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
    newest undamaged checkpoint, and a preset folder those that it holds.

    Returns:
        Dict `{"run", "weights", "weights_sha256"}`: the other run's name, the
        file of its weights and that file's hash.

    Raises:
        UserError: if the folder is not a run folder or preset folder, has no
            weights yet, or has other tokenizers.
    """
    run = RunFolder(recipe.training.initialize_from)
    preset = None
    try:
        if is_preset_folder(run.directory):
            preset = read_run(run.directory)
            name = preset.summary["name"]
            tokenizer = preset.summary["tokenizer"]
        else:
            source = run.recipe()
            name, tokenizer = source.name, source.resolved.get("tokenizer")
    except UserError as error:
        raise UserError(
            f"recipe {recipe.name}, `training.initialize_from`: {error}"
        ) from error
    if tokenizer != dict(data.manifest["tokenizer"]):
        remedy = (
            "Give `training.initialize_from` a run on the same prepared data."
            if preset is None
            else "Leave `--prepared` out, so that the data are prepared with "
            "its tokenizers, or give them to `deepnmt prepare` as "
            "`--tokenizer-source` and `--tokenizer-target`."
        )
        raise UserError(
            f"{run.directory}: its tokenizers are not those of "
            f"{data.directory}, so the same id stands for another subword. "
            f"{remedy}"
        )
    if preset is not None:
        file = preset.weights_file
    elif run.run_file.is_file():
        file = run.model_dir / WEIGHTS_FILE
    else:
        step = run.checkpoints().latest()
        if step is None:
            raise UserError(
                f"{run.directory}: this run has no weights yet. Train it first."
            )
        file = run.checkpoints().path(step) / WEIGHTS_FILE
    return {
        "run": name,
        "weights": str(file.resolve()),
        "weights_sha256": file_sha256(file),
    }


def copy_initial_weights(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    model: keras.Model,
    recorded: Mapping[str, str],
) -> SharedWeights:
    """Copies the weights that `model` shares with `training.initialize_from`.

    `recorded` is what `find_initial_weights` returned.

    Returns:
        What was copied and what was not.

    Raises:
        UserError: if the weights are no longer those that the run was started
            with, or nothing is shared.
    """
    folder = Path(recipe.training.initialize_from)
    file = Path(recorded["weights"])
    if not file.is_file() or file_sha256(file) != recorded["weights_sha256"]:
        raise UserError(
            f"{folder}: its weights are no longer those that "
            f"{run.directory} was started with. Use another run folder."
        )
    if is_preset_folder(folder):
        source = read_run(folder).load_model()
    else:
        source = build_model(RunFolder(folder).recipe(), data.manifest)
        source.load_weights(file)
    report = copy_shared_weights(source, model)
    if not report.shared:
        raise UserError(
            f"{folder}: shares no weight with this recipe's model. Leave "
            "`training.initialize_from` out."
        )
    return report
