"""What a run is trained on, written down before it starts."""

import hashlib
from pathlib import Path

from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes import provenance
from keras_deepnmt.recipes.initializing import find_source
from keras_deepnmt.recipes.loading import save_recipe
from keras_deepnmt.recipes.robust_training import read_teacher
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe


def prepared_data(
    recipe: Recipe,
    run: RunFolder,
    data_dir: str | Path | None,
    prepared_dir: str | Path | None,
    quiet: bool,
) -> PreparedData:
    """Opens the corpus of a run, prepared first where nobody has.

    Args:
        recipe: the recipe.
        run: the run's folder.
        data_dir: folder with copies of named corpora.
        prepared_dir: a prepared folder; the run's own by default.
        quiet: shows nothing.

    Returns:
        The corpus.
    """
    if prepared_dir is None:
        prepare_corpus(
            recipe.data, run.data_dir, data_dir=data_dir, progress=not quiet
        )
        prepared_dir = run.data_dir
    return PreparedData(prepared_dir)


def record(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    batch: dict[str, int] | None,
) -> None:
    """Writes what the recipe means here, or checks that it still does.

    Args:
        recipe: the recipe.
        run: the run's folder.
        data: the corpus.
        batch: what `batch_search.find_batch` gave.

    Raises:
        UserError: if the run was started with other tokenizers or another
            teacher.
    """
    manifest = (data.directory / "manifest.json").read_bytes()
    resolved = {
        "prepared": str(data.directory.resolve()),
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "tokenizer": dict(data.manifest["tokenizer"]),
        "corpora": data.manifest["corpora"],
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    teacher = read_teacher(recipe)
    if teacher is not None:
        resolved["teacher_sha256"] = teacher.weights_sha256
    if batch is not None:
        resolved["batch"] = batch
    if run.recipe_file.is_file():
        before = run.recipe().resolved
        tokenizer = before.get("tokenizer")
        if tokenizer and tokenizer != resolved["tokenizer"]:
            raise UserError(
                f"{data.directory}: its tokenizers are not those "
                f"{run.recipe_file} was started with. Use that data, or "
                "another run folder."
            )
        if before.get("teacher_sha256") != resolved.get("teacher_sha256"):
            raise UserError(
                f"{teacher.directory}: its weights are not those "
                f"{run.recipe_file} was started with. Use that teacher, or "
                "another run folder."
            )
        return
    if recipe.training.initialize_from is not None:
        resolved["initialize_from"] = find_source(recipe, data)
    run.copy_tokenizers(data.directory)
    save_recipe(recipe, run.recipe_file, resolved)
