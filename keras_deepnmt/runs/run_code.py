"""The user's own code in a run: which file is used, and the copy of it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from keras_deepnmt.files import copy_folder, write_bytes
from keras_deepnmt.own_code.code_file import CODE_DIR, CodeFile, read_codes
from keras_deepnmt.own_code.loading import (
    allow_code,
    given_entries,
    preferred,
    use_code,
    warn_once,
)
from keras_deepnmt.own_code.recorded import (
    code_record,
    recorded_entries,
    use_recorded,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.translator.loading import read_run


def use_code_of(recipe: Recipe) -> None:
    """Runs the files of a recipe, so that it may name their classes."""
    records = recipe.resolved.get("code", [])
    if len(records) == len(recipe.import_):
        use_recorded(records, recipe.import_)
    else:
        use_code(recipe.import_)


def allow_code_of(recipe: Recipe) -> None:
    """Notes the consent of the user, who has named the recipe.

    It does not hold for the recipe in a run folder, which may be another's.
    """
    if "code" not in recipe.resolved:
        allow_code(recipe.import_)


def settle_code(
    recipe: Recipe,
    started: Recipe | None,
    preset_dir: str | Path | None,
) -> Recipe:
    """Settles which files a run imports, and runs them.

    They are those of the recipe, of `--import` and, for a run that fine-tunes a
    preset folder, of that folder. A run that is resumed keeps its copies,
    unless `--import` gives another file in place of one.
    """
    allow_code_of(recipe)
    entries = [*recipe.import_, *given_entries()]
    if preset_dir is not None:
        preset = read_run(preset_dir)
        preset.use_code()
        records = preset.summary.get("code", [])
        kept = recorded_entries(records, preset.directory.absolute())
        entries = [*_others(kept, entries), *entries]
    codes = {code.name: code for code in map(_chosen, _read(entries))}
    if started is not None:
        codes = _as_started(codes.values(), started)
    recipe = replace(recipe, import_=[code.entry for code in codes.values()])
    use_code_of(recipe)
    return recipe


def keep_code(
    folder: RunFolder, recipe: Recipe
) -> tuple[list[str], list[dict[str, str]]]:
    """Copies the files of a recipe into its run folder.

    Returns the entries of the copies, and what the recipe in the folder records
    of them in `resolved.code`.
    """
    codes = read_codes(recipe.import_)
    records = [code_record(code) for code in codes]
    before = {r.get("file"): r for r in recipe.resolved.get("code", [])}
    for code, record in zip(codes, records, strict=True):
        if code.is_module:
            continue
        copy = folder.directory / record["file"]
        if copy.absolute() == code.path:
            # The origin stays that of the copy.
            record |= before.get(record["file"], {})
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(copy, code.content)
    return recorded_entries(records, folder.directory.absolute()), records


def copy_code(source: Path, target: Path) -> None:
    """Copies the code that a run or preset folder keeps, if it has any."""
    if (source / CODE_DIR).is_dir():
        copy_folder(source / CODE_DIR, target / CODE_DIR)


def _read(entries: Iterable[str]) -> list[CodeFile]:
    # The last of the same name counts: that of `--import`.
    return read_codes({Path(e).name: e for e in entries}.values())


def _chosen(code):
    return preferred(code.entry) or code


def _others(kept, entries):
    names = {Path(entry).name for entry in entries}
    return [entry for entry in kept if Path(entry).name not in names]


def _as_started(codes, started):
    """The copies of a run that is resumed; warns of files that differ."""
    copies = {code.name: code for code in read_codes(started.import_)}
    for code in codes:
        copy = copies.get(code.name)
        is_same = copy is not None and copy.sha256 == code.sha256
        if copy is None or (preferred(code.entry) and not is_same):
            copies[code.name] = code
        elif not is_same:
            warn_once(
                str(code.path),
                f"differs from {copy.path}, with which this run was started "
                f"and which is used. `--import {code.path} --allow-changes` "
                "continues with the changed file, `--restart` begins again "
                "with it.",
            )
    return copies
