"""Writes the model of a run as a preset folder, with a model card."""

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.file_tables import file_table
from keras_deepnmt.files import (
    PRESET_FILE,
    WEIGHTS_FILE,
    StagedFolder,
    copy_folder,
    file_sha256,
    write_json,
    write_text,
)
from keras_deepnmt.own_code.code_file import CODE_DIR
from keras_deepnmt.own_code.recorded import recorded_entries
from keras_deepnmt.recipes.loading import save_recipe
from keras_deepnmt.runs.checkpoints import open_run
from keras_deepnmt.runs.model_card import model_card
from keras_deepnmt.runs.run_code import copy_code
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import read_scores
from keras_deepnmt.serving.golden import default_sources
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.loading import is_preset_folder
from keras_deepnmt.weights_files import (
    check_room,
    load_weights,
    round_weights,
)

# Sentences that the saved model must translate as the run's model does.
_NUM_SENTENCES = 3
_SIDES = ("source", "target")
Dtype = Literal["float32", "float16"]
DTYPES = get_args(Dtype)


def save_run_to_preset(
    run_dir: str | Path,
    directory: str | Path,
    *,
    checkpoint: str | int | None = None,
    dtype: Dtype = "float32",
    **search_options: Any,
) -> Path:
    """Writes the model of a run as a preset folder, with a model card.

    The folder holds the files of a Keras preset (`config.json`,
    `metadata.json`, `model.weights.h5`), the two SentencePiece models in
    `tokenizer/`, `shortlist.npz` if the run has it, the search options and the
    entries of `run.json` and `scores.json` about this model in
    `translator.json`, the recipe, and `README.md`, a model card with the
    metadata that Hugging Face defines. `Translator.load` and the commands read
    it in place of a run folder.

    The folder appears when it is complete and has been loaded: its weights and
    some translations must be those of the run.

    Args:
        run_dir: folder of a run; finished, unless `checkpoint` is given.
        directory: the folder to write; it must not exist yet.
        checkpoint: `"latest"`, `"best"` or the step of the checkpoint to save.
            Defaults to the final model of a finished run.
        dtype: type of the stored weights. With `"float16"` they take half of
            the space and are rounded to eleven bits; the model computes in
            float32 all the same. The folder does not have the run's scores
            then, which are those of other weights. Defaults to `"float32"`.
        **search_options: fields of `decoding.SearchOptions`, such as
            `num_beams=4`, that replace the run's.

    Returns:
        The folder.

    Raises:
        UserError: if the run is not finished or damaged, the folder exists,
            a file to copy is a link, the disk is full, a weight is too large
            for float16, or the saved model is not that of the run.

    Example:
    >>> save_run_to_preset("runs/demo", "presets/demo")
    PosixPath('presets/demo')
    """
    directory = Path(directory)
    if dtype not in DTYPES:
        raise UserError(
            f"`dtype` must be one of {', '.join(DTYPES)}. Received: {dtype}"
        )
    if directory.exists():
        raise UserError(f"{directory}: exists already. Give a new folder.")
    run = RunFolder.find(run_dir)
    if is_preset_folder(run.directory):
        raise UserError(
            f"{run.directory}: is a preset folder already. Copy it, or give "
            "the run folder."
        )
    run.refuse_links()
    recipe = run.recipe()
    loaded = open_run(run_dir, checkpoint)
    translator = Translator.load(loaded, **search_options)
    summary = loaded.summary
    if checkpoint is not None:
        summary = summary | {
            "parameters": translator.model.count_params(),
            "versions": recipe.resolved.get("versions", {}),
            "commit": recipe.resolved.get("commit"),
        }
    with StagedFolder(directory) as folder:
        check_room(folder, translator.model.variables)
        translator.model.save_to_preset(str(folder))
        if dtype != "float32":
            round_weights(folder / WEIGHTS_FILE, dtype)
            # What is compared with them below.
            load_weights(translator.model, folder / WEIGHTS_FILE)
        copy_folder(run.tokenizer_dir, folder / run.tokenizer_dir.name)
        RunFolder(folder).copy_shortlist(run.directory)
        copy_code(run.directory, folder)
        resolved = _portable(recipe.resolved)
        kept = resolved.get("code", [])
        recipe = replace(recipe, import_=recorded_entries(kept, folder))
        save_recipe(recipe, folder / "recipe.yaml", resolved)
        weights_sha256 = file_sha256(folder / WEIGHTS_FILE)
        rows = [
            # The scores are those of the same weights in another file.
            {**row, "weights_sha256": weights_sha256}
            for row in read_scores(run.scores_file)
            if dtype == "float32"
            and row.get("weights_sha256") == summary["weights_sha256"]
            # Not those of translations that were given a part of the text.
            and "given" not in row
        ]
        options = dataclasses.asdict(translator.options)
        summary |= {
            "decoding": {**summary.get("decoding", {}), **options},
            "weights_sha256": weights_sha256,
            "code": kept,
            "scores": rows,
            # Not the model card, which is written next and may be changed.
            "files": file_table(
                folder,
                [p.name for p in folder.iterdir() if p.name != CODE_DIR],
            ),
        }
        write_json(folder / PRESET_FILE, summary)
        card = model_card(
            recipe,
            summary,
            type(translator.model).__name__,
            directory.name,
            translator.max_source_length,
        )
        write_text(folder / "README.md", card)
        tag = next(filter(None, loaded.tags), None)
        _verify(folder, directory, translator, tag)
    return directory


def _portable(resolved):
    """Leaves out the paths of the machine that the run was trained on."""
    paths = ("prepared", "from_preset")
    portable = {k: v for k, v in resolved.items() if k not in paths}
    if "initialize_from" in portable:
        source = portable["initialize_from"]
        portable["initialize_from"] = {
            k: v for k, v in source.items() if k != "weights"
        }
    portable["corpora"] = [
        {**corpus, **{s: Path(corpus[s]).name for s in _SIDES}}
        for corpus in portable.get("corpora", [])
    ]
    for corpus in portable["corpora"]:
        if given := corpus.get("alignments"):
            name = Path(given["file"]).name
            corpus["alignments"] = {**given, "file": name}
    portable["code"] = [
        {k: v for k, v in record.items() if k != "origin"}
        for record in portable.get("code", [])
    ]
    return portable


def _verify(folder, directory, translator, tag):
    """Loads the written folder and compares weights and translations."""
    saved = Translator.load(folder)
    pairs = zip(
        translator.model.get_weights(), saved.model.get_weights(), strict=True
    )
    is_same = all(np.array_equal(one, other) for one, other in pairs)
    if is_same:
        texts = default_sources(translator.source_tokenizer, _NUM_SENTENCES)
        expected, received = (
            loaded.replaced(compiled=False, tag=tag).translate(texts)
            for loaded in (translator, saved)
        )
        is_same = expected == received
    if not is_same:
        raise UserError(
            f"{directory}: the saved model does not translate as that of the "
            "run, so nothing was kept. Check the disk, and run again."
        )
