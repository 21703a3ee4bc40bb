"""Makes a recipe start from a preset folder: its model, tokenizers, weights."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import fine_tuned_model, started_from_preset
from keras_deepnmt.recipes.schema import ModelRecipe, Recipe
from keras_deepnmt.runs.build import build_model
from keras_deepnmt.translator.loading import Run, read_run

_SIDES = ("source", "target")
# A model may differ in these arguments and have the same weights.
_FREE = ("name", "dtype", "seed", "trainable")
_FREE_ENDINGS = ("dropout", "initializer")


def fine_tune(
    recipe: Recipe,
    run_dir: str | Path,
    preset_dir: str | Path | None,
    has_prepared: bool,
    restart: bool = False,
) -> Recipe:
    """Returns the recipe of a run that starts from a preset folder.

    Its data are prepared with the tokenizers of the folder, unless there is a
    prepared folder, and `training.initialize_from` is the folder.

    Args:
        recipe: the recipe.
        run_dir: the run folder. A run that was started from a preset folder is
            resumed without it, unless `restart`.
        preset_dir: the preset folder, or `None`.
        has_prepared: whether the data are those of a prepared folder.
        restart: whether the run begins again.

    Raises:
        UserError: if `preset_dir` is no preset folder or damaged, or the recipe
            has another model, other tokenizers or other initial weights.

    Example:
    >>> from keras_deepnmt.recipes import load_recipe
    >>> recipe = load_recipe("transformer_tiny.demo_de_en")
    >>> fine_tune(recipe, "runs/new", None, has_prepared=False) is recipe
    True
    """
    if preset_dir is None:
        started = None if restart else started_from_preset(run_dir)
        return recipe if started is None else _as_started(recipe, started)
    fine_tuned_model(run_dir, preset_dir)  # refuses other folders
    directory = Path(preset_dir).resolve()
    preset = read_run(directory)
    own = recipe.training.initialize_from
    if own is not None and Path(own).resolve() != directory:
        raise UserError(
            f"recipe {recipe.name}: `training.initialize_from` must not be "
            f"given with `--from-preset {preset_dir}`. Received: {own}. Leave "
            "one of them out."
        )
    resolved = {
        "from_preset": str(directory),
        "preset_version": preset.preset_version,
    }
    training = replace(recipe.training, initialize_from=str(directory))
    recipe = replace(recipe, training=training, resolved=resolved)
    _check_model(recipe, preset)
    if has_prepared:
        return recipe
    return replace(recipe, data=_with_tokenizers(recipe, preset))


def _as_started(recipe, started):
    """Repeats in a recipe what the start of the run has recorded."""
    data = replace(
        recipe.data,
        joint=started.data.joint,
        tokenizer_source=started.data.tokenizer_source,
        tokenizer_target=started.data.tokenizer_target,
    )
    source = started.training.initialize_from
    training = replace(recipe.training, initialize_from=source)
    resolved = dict(started.resolved)
    return replace(recipe, data=data, training=training, resolved=resolved)


def _with_tokenizers(recipe, preset):
    """Returns the section `data` with the tokenizers of the preset folder."""
    tokenizers = {
        "source": preset.source_tokenizer,
        "target": preset.target_tokenizer,
    }
    for side in _SIDES:
        name = f"tokenizer_{side}"
        own = getattr(recipe.data, name)
        if own and Tokenizer(own).sha256 != tokenizers[side].sha256:
            raise UserError(
                f"recipe {recipe.name}: `data.{name}` must be that of "
                f"{preset.directory}. Received: {own}, another tokenizer. "
                "Leave it out."
            )
    joint = preset.source_tokenizer.sha256 == preset.target_tokenizer.sha256
    return replace(
        recipe.data,
        joint=joint,
        tokenizer_source=str(preset.source_tokenizer.model_file),
        tokenizer_target=(
            None if joint else str(preset.target_tokenizer.model_file)
        ),
    )


def _check_model(recipe: Recipe, preset: Run) -> None:
    """Raises a `UserError` that names the first argument that differs."""
    if recipe.model == ModelRecipe(preset.preset, preset.overrides):
        return
    theirs, mine = (
        {"": type(model).__name__, **dict(_arguments(model.get_config()))}
        for model in (preset.build_model(), build_model(recipe, preset.summary))
    )
    for key in sorted(theirs.keys() | mine.keys()):
        there, here = theirs.get(key), mine.get(key)
        if here != there:
            what = f"`{key}` {there!r}" if key else f"the class {there}"
            raise UserError(
                f"{preset.directory}: its model has {what}, and that of "
                f"recipe {recipe.name} {here!r}. Leave `model` out of the "
                "recipe. To start another model with the weights that both "
                "have, set `training.initialize_from` to this folder instead "
                "of giving `--from-preset`."
            )


def _arguments(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the arguments of a model that decide on its weights, by path."""
    if isinstance(config, dict):
        items = config.items()
    elif isinstance(config, list | tuple):
        items = enumerate(config)
    else:
        yield path, config
        return
    for key, value in items:
        name = str(key)
        if name not in _FREE and not name.endswith(_FREE_ENDINGS):
            yield from _arguments(value, f"{path}.{name}" if path else name)
