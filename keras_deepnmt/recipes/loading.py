"""Reads and writes recipe files."""

import dataclasses
import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from keras_deepnmt.data.manifest import MANIFEST_FILE, read_manifest
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.files import PRESET_FILE, write_text
from keras_deepnmt.json_files import check_form, read_json
from keras_deepnmt.own_code.code_file import located
from keras_deepnmt.recipes.bundled import bundled_names
from keras_deepnmt.recipes.checking import RecipeChecker, join
from keras_deepnmt.recipes.earlier_keys import present_key, present_value
from keras_deepnmt.recipes.extending import alternatives, read_content
from keras_deepnmt.recipes.schema import Recipe, sections_of
from keras_deepnmt.trained import find_run_folder
from keras_deepnmt.validation import key_of

RECIPE_FILE = "recipe.yaml"  # in a run folder
_REMEDY = (
    "It was written by `deepnmt train`: mend what was changed, or copy it from "
    "where it is whole. Otherwise the run can only begin again, by `--restart`."
)


class _Corpus(BaseModel, extra="allow"):
    split: str
    name: str
    pairs: int
    sha256: dict[str, str] = {}


class _Change(BaseModel, extra="allow"):
    update: int
    keys: dict[str, dict[str, Any]]
    batches: dict[str, Any] = {}


class _Resolved(BaseModel, extra="allow"):
    prepared: str = ""
    tokenizer: dict[str, str] = {}
    corpora: list[_Corpus] = []
    code: list[dict[str, str]] = []
    versions: dict[str, str | None] = {}
    commit: str | None = None
    batch: dict[str, int] = {}
    batches: dict[str, Any] = {}
    changes: list[_Change] = []
    initialize_from: dict[str, Any] = {}


class _Recorded(BaseModel, extra="allow"):
    """What `deepnmt train` adds to a recipe: what is read, and the types."""

    resolved: _Resolved


class _PresetModel(BaseModel, extra="allow"):
    """The values of `translator.json` that are read here, and their types."""

    preset: str
    overrides: dict[str, Any]


def list_recipes(pattern: str = "*") -> list[str]:
    """Lists the bundled recipes.

    Args:
        pattern: a name with wildcards, such as `"transformer_*"`.

    Returns:
        Sorted list of names for `load_recipe`, each `PRESET.CORPUS`. A recipe
        of a plain model stands for those of all presets that are compared
        with it.

    Example:
    >>> "transformer_tiny.demo_de_en" in list_recipes()
    True
    """
    return fnmatch.filter(bundled_names(), pattern)


def load_recipe(
    recipe: str | Path,
    overrides: Mapping[str, Any] | None = None,
    prepared_dir: str | Path | None = None,
    model: Mapping[str, Any] | None = None,
) -> Recipe:
    """Reads a bundled recipe or a recipe file.

    The name of a recipe that gives none is that of its file. A recipe with the
    key `extends` is merged with the recipe that it names, whose sections it
    changes key by key.

    Args:
        recipe: a name from `list_recipes()`, or the path of a YAML file.
        overrides: values that replace the file's, by dotted key, such as
            `{"training.steps": 100}`. With another optimizer, schedule or loss
            the file's options of the former one are left out.
        prepared_dir: a prepared folder. If the recipe has no section `data`,
            it is that of this folder.
        model: what `fine_tuned_model` returned: the section `model` of a
            recipe that names no preset.

    Returns:
        The recipe, with all defaults filled in.

    Raises:
        UserError: if there is no such recipe, or a key is unknown (the most
            similar known key is suggested), missing or of the wrong type. The
            message names the file and the line. Several mistakes are reported
            together, one line each.

    Example:
    >>> load_recipe("transformer_tiny.multi30k_en_de", {"seed": 7}).seed
    7
    """
    place = _place(recipe)
    checker = RecipeChecker(place)
    content = read_content(str(recipe), checker)
    if isinstance(content, dict):
        for key, value in (overrides or {}).items():
            if key == "extends":
                checker.add(key, "must be in the file. Received: an override.")
                continue
            if key == "import" and isinstance(value, list):
                value = [located(entry, Path()) for entry in value]
            _override(content, key, value, checker, overrides)
        content.setdefault("name", Path(place).stem)
        if "data" not in content and prepared_dir is not None:
            content["data"] = _prepared_content(prepared_dir)
        if model is not None:
            _add_model(content, model)
    made = checker.check(Recipe, content)
    checker.raise_mistakes()
    return made


def recipe_name(recipe: str | Path) -> str:
    """Returns the name of a recipe, whose content is not checked.

    Example:
    >>> recipe_name("transformer_tiny.demo_de_en")
    'transformer_tiny.demo_de_en'
    """
    place = _place(recipe)
    content = read_content(str(recipe), RecipeChecker(place))
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) else Path(place).stem


def _place(recipe):
    """Returns the file name of a recipe, as errors give it."""
    name = str(recipe)
    return f"{name}.yaml" if name in bundled_names() else name


def fine_tuned_model(
    run_dir: str | Path, preset_dir: str | Path | None, restart: bool = False
) -> dict[str, Any] | None:
    """Returns the section `model` of a run that fine-tunes a preset folder.

    It is that of `preset_dir`; without one that of the run that is resumed in
    `run_dir`, if a preset folder was given at its start, and otherwise `None`.
    """
    if preset_dir is None:
        started = None if restart else started_from_preset(run_dir)
        return started and dataclasses.asdict(started.model)
    file = find_run_folder(preset_dir) / PRESET_FILE
    if not file.is_file():
        raise UserError(
            f"{preset_dir}: is not a preset folder (it holds no {file.name}). "
            "Write one with `deepnmt export RUN DIR --format preset`."
        )
    content = read_json(file, _PresetModel, "Copy the folder again.")
    return {key: content[key] for key in ("preset", "overrides")}


def started_recipe(run_dir: str | Path) -> Recipe | None:
    """Returns the recipe that a run was started with.

    Without a run in the folder it is `None`. A recipe that is damaged is a
    `UserError` with the remedy.
    """
    file = Path(run_dir, RECIPE_FILE)
    if not file.is_file():
        return None
    try:
        recipe = load_recipe(file)
        check_form({"resolved": recipe.resolved}, file, _Recorded)
        return recipe
    except UserError as error:
        *lines, last = str(error).splitlines()
        last = last.removesuffix(".")
        raise UserErrors([*lines, f"{last}. {_REMEDY}"]) from error


def started_from_preset(run_dir: str | Path) -> Recipe | None:
    """Returns the recipe of a run that fine-tunes a preset folder.

    Without such a run in the folder it is `None`.
    """
    started = started_recipe(run_dir)
    if started is None or "from_preset" not in started.resolved:
        return None
    return started


def prepared_data_options(prepared_dir: str | Path) -> PrepareOptions:
    """Returns the options that a folder was prepared with."""
    checker = RecipeChecker(str(Path(prepared_dir, MANIFEST_FILE)))
    made = checker.check(PrepareOptions, _prepared_content(prepared_dir))
    checker.raise_mistakes()
    return made


def _prepared_content(prepared_dir):
    options = read_manifest(prepared_dir)["options"]
    names = {field.name for field in dataclasses.fields(PrepareOptions)}
    return {name: options[name] for name in options if name in names}


def save_recipe(
    recipe: Recipe, file: Path, resolved: Mapping[str, Any]
) -> None:
    """Writes a recipe with all defaults filled in.

    `load_recipe` reads it back as an equal recipe. `resolved` is stored with
    it: the versions and the hashes of the data that the run uses.
    """
    content = recipe_content(recipe)
    content["import"] = [
        _beside(entry, file.absolute().parent) for entry in recipe.import_
    ]
    content["resolved"] = dict(resolved)
    write_text(
        file, yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    )


def recipe_content(recipe: Recipe) -> dict[str, Any]:
    """Converts a recipe to dictionaries, lists and values for YAML.

    `resolved` and `extends` are left out.
    """
    values = {key_of(k): v for k, v in dataclasses.asdict(recipe).items()}
    content = _plain(values)
    del content["resolved"], content["extends"]
    return content


def flatten_recipe(recipe: Recipe) -> dict[str, Any]:
    """Returns the values of a recipe by dotted key.

    For instance `{"training.steps": 8000, ...}`.
    """
    flat = {}

    def visit(prefix, value):
        if isinstance(value, dict) and value:
            for key, item in value.items():
                visit(f"{prefix}.{key}" if prefix else key, item)
        else:
            flat[prefix] = value

    visit("", recipe_content(recipe))
    return flat


def _beside(entry, folder):
    """An entry of `import` relative to the folder that holds it, if one does.

    A run folder may be moved with its copies.
    """
    inside = Path(entry).is_absolute() and Path(entry).is_relative_to(folder)
    return str(Path(entry).relative_to(folder)) if inside else entry


def _override(content, key, value, checker, overrides):
    key, value = present_key(key), present_value(key, value)
    *sections, name = key.split(".")
    checker.positions[key] = None
    kind, path = Recipe, ""
    for section in sections:
        _replace_alternatives(content, kind, path, section, True, overrides)
        if content.get(section) is None:  # a section that is switched off
            content[section] = {}
        content = content[section]
        if not isinstance(content, dict):
            rule = f": `{section}` is a value and has no keys."
            checker.add(key, rule)
            return
        path, kind = join(path, section), _inner(kind, section)
    _replace_alternatives(content, kind, path, name, value, overrides)
    _drop_options(content, kind, path, name, value, overrides)
    content[name] = value


def _inner(kind, section):
    """Returns the section `section` of a section; `None` if it is none."""
    kind = kind and sections_of(kind).get(section)
    return None if kind is dict else kind


def _replace_alternatives(content, kind, path, key, value, overrides):
    for other in alternatives(kind, key, value):
        _drop(content, path, other, overrides)


def _drop_options(content, kind, path, key, value, overrides):
    """Drops the options of another optimizer, schedule or loss, as `extends`.

    Those that are overrides themselves stay.
    """
    choice = getattr(kind, "choice", None)
    if choice is None or key != choice.key:
        return
    if value != content.get(key, getattr(kind, key)):
        for other in (*choice.keys(), *choice.others):
            _drop(content, path, other, overrides)


def _drop(content, path, key, overrides):
    given = f"{join(path, key)}."
    if not any(f"{name}.".startswith(given) for name in overrides):
        content.pop(key, None)


def _add_model(content, model):
    """Names the preset in a recipe that names none; its overrides stay."""
    section = content.setdefault("model", {})
    if not isinstance(section, dict) or "preset" in section:
        return
    section["preset"] = model["preset"]
    overrides = section.setdefault("overrides", {})
    if isinstance(overrides, dict):
        section["overrides"] = {**model["overrides"], **overrides}


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
