"""Reads and writes recipe files."""

import dataclasses
import difflib
import fnmatch
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from keras_deepnmt.data.manifest import MANIFEST_FILE, read_manifest
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import PRESET_FILE, read_json, write_text
from keras_deepnmt.recipes.checking import RecipeChecker, join
from keras_deepnmt.recipes.schema import Recipe

RECIPE_FILE = "recipe.yaml"  # in a run folder


def list_recipes(pattern: str = "*") -> list[str]:
    """Lists the bundled recipes.

    Args:
        pattern: a name with wildcards, such as `"transformer_*"`.

    Returns:
        Sorted list of names for `load_recipe`.

    Example:
    >>> "transformer_tiny.demo_de_en" in list_recipes()
    True
    """
    files = [file.name for file in _bundled_recipes().iterdir()]
    names = [f.removesuffix(".yaml") for f in files if f.endswith(".yaml")]
    return sorted(fnmatch.filter(names, pattern))


def load_recipe(
    recipe: str | Path,
    overrides: Mapping[str, Any] | None = None,
    prepared_dir: str | Path | None = None,
    model: Mapping[str, Any] | None = None,
) -> Recipe:
    """Reads a bundled recipe or a recipe file.

    The name of a recipe that gives none is that of its file.

    Args:
        recipe: a name from `list_recipes()`, or the path of a YAML file.
        overrides: values that replace the file's, by dotted key, such as
            `{"training.steps": 100}`.
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
    place, text = _read(str(recipe))
    checker = RecipeChecker(place, {})
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
        _read_lines(node, checker)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises `ValueError` for a date such as 2020-13-45; brackets
        # may be too deep, or an alias may stand in its own anchor.
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise UserError(f"{place}{line}: not YAML: {problem}.") from error
    content = {} if content is None else content
    if isinstance(content, dict):
        for key, value in (overrides or {}).items():
            _override(content, key, value, checker)
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
    place, text = _read(str(recipe))
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) else Path(place).stem


def fine_tuned_model(
    run_dir: str | Path, preset_dir: str | Path | None, restart: bool = False
) -> dict[str, Any] | None:
    """Returns the section `model` of a run that fine-tunes a preset folder.

    It is that of `preset_dir`; without one that of the run that is resumed in
    `run_dir`, if a preset folder was given at its start, and otherwise `None`.

    Raises:
        UserError: if `preset_dir` is no preset folder.

    Example:
    >>> fine_tuned_model("runs/new", None) is None
    True
    """
    if preset_dir is None:
        started = None if restart else started_from_preset(run_dir)
        return started and dataclasses.asdict(started.model)
    file = Path(preset_dir, PRESET_FILE)
    if not file.is_file():
        raise UserError(
            f"{preset_dir}: is no preset folder (it holds no {file.name}). "
            "Write one with `deepnmt export RUN DIR --format preset`."
        )
    content = read_json(file)
    try:
        return {key: content[key] for key in ("preset", "overrides")}
    except (KeyError, TypeError) as error:
        raise UserError(f"{file}: lacks preset or overrides.") from error


def started_from_preset(run_dir: str | Path) -> Recipe | None:
    """Returns the recipe of a run that fine-tunes a preset folder.

    Without such a run in the folder it is `None`.

    Example:
    >>> started_from_preset("runs/new") is None
    True
    """
    file = Path(run_dir, RECIPE_FILE)
    started = load_recipe(file) if file.is_file() else None
    if started is None or "from_preset" not in started.resolved:
        return None
    return started


def prepared_data_options(prepared_dir: str | Path) -> PrepareOptions:
    """Returns the options that a folder was prepared with.

    Raises:
        UserError: if it is no prepared folder.

    Example:
    >>> prepared_data_options("prepared").vocabulary_size
    10000
    """
    checker = RecipeChecker(str(Path(prepared_dir, MANIFEST_FILE)), {})
    made = checker.check(PrepareOptions, _prepared_content(prepared_dir))
    checker.raise_mistakes()
    return made


def with_prepared_data(recipe: Recipe, prepared_dir: str | Path) -> Recipe:
    """Returns the recipe with the data that a folder was prepared with.

    Raises:
        UserError: if it is no prepared folder.

    Example:
    >>> recipe = load_recipe("transformer_tiny.demo_de_en")
    >>> with_prepared_data(recipe, "prepared").data.train[0].source
    'train.en'
    """
    data = prepared_data_options(prepared_dir)
    return dataclasses.replace(recipe, data=data)


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
    content["resolved"] = dict(resolved)
    write_text(
        file, yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    )


def recipe_content(recipe: Recipe) -> dict[str, Any]:
    """Converts a recipe to dictionaries, lists and values for YAML.

    `resolved` is left out.
    """
    content = _plain(dataclasses.asdict(recipe))
    content.pop("resolved")
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


def _bundled_recipes():
    return resources.files(__package__) / "files"


def _read(recipe):
    if recipe in (names := list_recipes()):
        file = _bundled_recipes() / f"{recipe}.yaml"
        return file.name, file.read_text(encoding="utf-8")
    if not Path(recipe).is_file():
        near = difflib.get_close_matches(recipe, names, n=1, cutoff=0.4)
        hint = f'did you mean "{near[0]}"?' if near else f"there are {names}."
        raise UserError(
            f'"{recipe}" is neither a file nor a bundled recipe; {hint}'
        )
    try:
        return recipe, Path(recipe).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{recipe}: not UTF-8 at byte {error.start}."
        ) from error


def _read_lines(node, checker, prefix=""):
    """Tells the checker the line of each key of a YAML document."""
    if isinstance(node, yaml.MappingNode):
        items = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        items = [(str(i), item, item) for i, item in enumerate(node.value)]
    else:
        items = []
    for name, at, value in items:
        key = join(prefix, name)
        line = at.start_mark.line + 1
        if key in checker.lines:
            first = checker.lines[key]
            rule = f"is given twice, first in line {first}."
            checker.add(key, rule, line)
        checker.lines.setdefault(key, line)
        _read_lines(value, checker, key)


def _override(content, key, value, checker):
    *sections, name = key.split(".")
    checker.lines[key] = None
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            rule = f": `{section}` is a value and has no keys."
            checker.add(key, rule)
            return
    content[name] = value


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
