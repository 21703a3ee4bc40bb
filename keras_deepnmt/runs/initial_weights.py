"""Starts a run from the weights of another run, or from a preset folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.vocabulary_extension import cut_new_pieces
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.own_code.loading import code_of_another_model
from keras_deepnmt.recipes.schema import ModelRecipe, Recipe
from keras_deepnmt.runs.build import build_model
from keras_deepnmt.runs.checkpoints import build_with_weights, load_model
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.trained import find_run_folder
from keras_deepnmt.training.transfer import (
    SharedWeights,
    copy_shared_weights,
)
from keras_deepnmt.training.vocabulary_rows import copy_to_larger_vocabulary
from keras_deepnmt.translator.loading import (
    TOKENIZER_DIR,
    Run,
    is_preset_folder,
    read_run,
)
from keras_deepnmt.zoo.registry import get_preset

_SIDES = ("source", "target")
# A model may differ in these arguments and have the same weights.
_FREE = ("name", "dtype", "seed", "trainable")
_FREE_ENDINGS = ("dropout", "initializer")


@dataclass(frozen=True)
class FineTuning:
    """The values of a recipe that a preset folder decides.

    Attributes:
        model: the section `model`.
        data: the section `data`, with its tokenizers.
        initialize_from: `training.initialize_from`.
        resolved: `resolved`, which names the folder.
    """

    model: ModelRecipe
    data: PrepareOptions
    initialize_from: str | None
    resolved: dict[str, Any]


def fine_tuning(
    recipe: Recipe,
    data: PrepareOptions,
    started: Recipe | None,
    preset_dir: str | Path | None,
    has_prepared: bool,
    extend_vocabulary: int | None = None,
) -> FineTuning:
    """Returns the changes of a recipe if the run starts from a preset folder.

    Its data are prepared with the tokenizers of the folder, unless there is a
    prepared folder, and `training.initialize_from` is the folder. Without a
    preset folder nothing changes, unless the run was started from one: then it
    is resumed without naming it again, nor how its vocabulary was extended.

    `data` is the section of the recipe, or that of the prepared folder;
    `started` is the recipe that a resumed run was started with;
    `extend_vocabulary` is the number of pieces that are added to the tokenizers
    in place of the recipe's.
    """
    if started is not None and "from_preset" not in started.resolved:
        started = None
    _check_extension(extend_vocabulary, preset_dir or started, has_prepared)
    number = extend_vocabulary or data.extend_vocabulary
    if not number and started is not None and not has_prepared:
        number = started.data.extend_vocabulary
    data = replace(data, extend_vocabulary=number)
    own = recipe.training.initialize_from
    if preset_dir is None:
        if started is None:
            return FineTuning(recipe.model, data, own, recipe.resolved)
        # These were recorded at the start of the run.
        tokenizers = {
            name: getattr(started.data, name)
            for name in ("joint", "tokenizer_source", "tokenizer_target")
        }
        return FineTuning(
            _as_started(recipe.model, started),
            replace(data, **tokenizers),
            started.training.initialize_from,
            dict(started.resolved),
        )
    directory = find_run_folder(preset_dir).resolve()
    preset = read_run(directory)
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
    _check_model(replace(recipe, resolved=resolved), preset)
    if not has_prepared:
        data = _with_tokenizers(recipe, data, preset)
    model = recipe.model
    if data.extend_vocabulary:
        model = _with_arguments(model, _size_arguments(preset))
    return FineTuning(model, data, str(directory), resolved)


def _check_extension(number, is_fine_tuned, has_prepared):
    if not number:
        return
    if has_prepared:
        raise UserError(
            "`extend_vocabulary` must not be given with a prepared folder, "
            f"whose text is ids already. Received: {number}. Give it to "
            "`deepnmt prepare`, or leave `--prepared` out."
        )
    if not is_fine_tuned:
        raise UserError(
            "`extend_vocabulary` extends the tokenizers of a preset folder. "
            f"Received: {number} without `--from-preset`."
        )


def _size_arguments(preset: Run) -> dict[str, Any]:
    """Returns the arguments of a model that follow from its vocabularies.

    They must stay when these grow.
    """
    function = get_preset(preset.preset)
    names = _names_of_size_arguments(function)
    if not names:
        return {}
    sizes = (
        preset.source_tokenizer.vocabulary_size,
        preset.target_tokenizer.vocabulary_size,
    )
    arguments = function.arguments(*sizes, **preset.overrides)
    return {name: arguments[name] for name in names}


def _names_of_size_arguments(function) -> list[str]:
    """Names the arguments that a preset chooses by the vocabularies' sizes."""
    if not hasattr(function, "arguments"):
        return []
    sizes = (1_000, 1_000), (1_000, 2_000), (2_000, 2_000)
    first, *others = (function.arguments(*pair) for pair in sizes)
    return [
        name
        for name, value in first.items()
        if isinstance(value, int | float)
        and any(other[name] != value for other in others)
    ]


def _as_started(model: ModelRecipe, started: Recipe) -> ModelRecipe:
    if not started.data.extend_vocabulary:
        return model
    names = _names_of_size_arguments(get_preset(started.model.preset))
    recorded = started.model.overrides
    return _with_arguments(
        model, {name: recorded[name] for name in names if name in recorded}
    )


def _with_arguments(model: ModelRecipe, arguments: Mapping) -> ModelRecipe:
    """Adds the arguments that a model does not give itself."""
    return replace(model, overrides={**arguments, **model.overrides})


def _with_tokenizers(recipe, data, preset):
    """Returns the section `data` with the tokenizers of the preset folder."""
    tokenizers = {
        "source": preset.source_tokenizer,
        "target": preset.target_tokenizer,
    }
    for side in _SIDES:
        name = f"tokenizer_{side}"
        own = getattr(data, name)
        if own and Tokenizer(own).sha256 != tokenizers[side].sha256:
            raise UserError(
                f"recipe {recipe.name}: `data.{name}` must be that of "
                f"{preset.directory}. Received: {own}, another tokenizer. "
                "Leave it out."
            )
    source, target = tokenizers["source"], tokenizers["target"]
    return replace(
        data,
        joint=source.has_pieces_of(target),
        tokenizer_source=str(source.model_file),
        tokenizer_target=(
            None if source.sha256 == target.sha256 else str(target.model_file)
        ),
    )


def _check_model(recipe: Recipe, preset: Run) -> None:
    """Raises a `UserError` that names the first argument that differs.

    Layers in slots that are empty in the preset's model may be added.
    """
    if recipe.model == ModelRecipe(preset.preset, preset.overrides):
        return
    theirs, mine = (
        {"": type(model).__name__, **dict(_arguments(model.get_config()))}
        for model in (preset.build_model(), build_model(recipe, preset.summary))
    )
    added = {
        key
        for key, value in theirs.items()
        if value is None and f"{key}.class_name" in mine
    }
    for key in sorted(theirs.keys() | mine.keys()):
        if key.partition(".")[0] in added:
            continue
        there, here = theirs.get(key), mine.get(key)
        if here != there:
            what = f"`{key}` {there!r}" if key else f"the class {there}"
            raise UserError(
                f"{preset.directory}: its model has {what}, and that of "
                f"recipe {recipe.name} {here!r}. Leave `model` out of the "
                "recipe, or add layers to empty slots alone. To start another "
                "model with the weights that both have, set "
                "`training.initialize_from` to this folder instead of giving "
                "`--from-preset`."
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


def find_initial_weights(recipe: Recipe, data: PreparedData) -> dict[str, str]:
    """Finds the weights that `training.initialize_from` names.

    A finished run gives its final model, one that is unfinished or trains again
    the weights of its newest undamaged checkpoint, and a preset folder those
    that it holds.
    Returns a dict of the other run's name, `"run"`, the file of its weights,
    `"weights"`, and that file's hash, `"weights_sha256"`. If the data have the
    other run's tokenizers with more pieces, `"tokenizer"` has the hashes of
    both tokenizers before.
    """
    run = RunFolder.find(recipe.training.initialize_from)
    preset = None
    try:
        if is_preset_folder(run.directory):
            preset = read_run(run.directory)
            name = preset.summary.get("name", "")
            tokenizer = preset.summary["tokenizer"]
        else:
            source = run.recipe()
            name, tokenizer = source.name, source.resolved.get("tokenizer")
    except UserError as error:
        raise UserError(
            f"recipe {recipe.name}, `training.initialize_from`: {error}"
        ) from error
    extended = {
        side: added["tokenizer"]
        for side, added in data.manifest.get("extension", {}).items()
    }
    is_same = tokenizer == dict(data.manifest["tokenizer"])
    if not is_same and tokenizer != extended:
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
    elif run.is_finished():
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
        **({} if is_same else {"tokenizer": extended}),
    }


def copy_initial_weights(
    source: str | Path,
    recorded: Mapping[str, Any],
    model: keras.Model,
    data: PreparedData,
    run_dir: Path,
) -> SharedWeights:
    """Copies the weights that a model shares with another run's.

    `source` is `training.initialize_from`, and `recorded` what
    `find_initial_weights` returned at the start of the run; the weights must
    not have changed since. `data` and `run_dir` are those of the run that
    begins.
    """
    folder, file = find_run_folder(source), Path(recorded["weights"])
    if not file.is_file() or file_sha256(file) != recorded["weights_sha256"]:
        raise UserError(
            f"{folder}: its weights are no longer those that {run_dir} was "
            "started with. Use another run folder."
        )
    sizes, parts = data.manifest, None
    if "tokenizer" in recorded:
        before = _tokenizers_before(folder, recorded["tokenizer"], run_dir)
        sizes = {
            f"{side}_vocabulary_size": one.vocabulary_size
            for side, one in before.items()
        }
        parts = [
            cut_new_pieces(before[side], one)
            for side, one in zip(
                _SIDES,
                (data.source_tokenizer, data.target_tokenizer),
                strict=True,
            )
        ]
    with code_of_another_model():
        other = (
            load_model(folder)
            if is_preset_folder(folder)
            else build_with_weights(RunFolder(folder).recipe(), sizes, file)
        )
    if parts is None:
        report = copy_shared_weights(other, model)
    else:
        report = copy_to_larger_vocabulary(other, model, *parts)
    if not report.shared:
        raise UserError(
            f"{folder}: shares no weight with this recipe's model. Leave "
            "`training.initialize_from` out."
        )
    return report


def _tokenizers_before(folder, hashes, run_dir) -> dict[str, Tokenizer]:
    """Opens the tokenizers whose vocabularies have grown."""
    tokenizers = {
        side: Tokenizer(folder / TOKENIZER_DIR / f"{side}.model")
        for side in _SIDES
    }
    for side, tokenizer in tokenizers.items():
        if tokenizer.sha256 != hashes[side]:
            raise UserError(
                f"{tokenizer.model_file}: is no longer the tokenizer that "
                f"{run_dir} was started with. Use another run folder."
            )
    return tokenizers
