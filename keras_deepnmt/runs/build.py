"""Builds the model, the optimizer and the batch plan of a recipe."""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    choose_batch_shapes,
    shapes_for_updates,
)
from keras_deepnmt.data.batches.datasets import validation_plan
from keras_deepnmt.data.manifest import row_weights
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.files import WEIGHTS_FILE
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.objective_options import make_loss, planned_lengths
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoints import checkpoint_fault
from keras_deepnmt.training.optimizers import Adam, AdamW, Muon, Nesterov
from keras_deepnmt.training.schedules import (
    Constant,
    DecayToZero,
    InverseSquareRoot,
    WarmUp,
)
from keras_deepnmt.training.transfer import freeze
from keras_deepnmt.training.weight_average import take_averages
from keras_deepnmt.zoo import create_model
from keras_deepnmt.zoo.registry import check_preset_version, get_preset

_logger = logging.getLogger(__name__)

_ROWS_AT_A_TIME = 1_000_000
# Types of arguments with the words of an error; True is an int in Python.
_KINDS = (
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a number"),
)


def build_model(recipe: Recipe, sizes: Mapping[str, Any]) -> keras.Model:
    """Builds a recipe's model, not compiled.

    `sizes` holds `source_vocabulary_size` and `target_vocabulary_size`, as a
    prepared folder's manifest and `run.json` do.

    Raises:
        UserError: if the preset is unknown or refuses an override.
    """
    preset, overrides = recipe.model.preset, recipe.model.overrides
    vocabulary_sizes = (
        sizes["source_vocabulary_size"],
        sizes["target_vocabulary_size"],
    )
    if recipe.resolved:
        check_preset_version(
            recipe.resolved.get("preset_version"), f"recipe {recipe.name}"
        )
    with refused_values(f"recipe {recipe.name}, `model`"):
        _check_overrides(preset, vocabulary_sizes, overrides)
        return create_model(
            preset,
            *vocabulary_sizes,
            **{"dtype": recipe.training.dtype_policy, **overrides},
        )


def _check_overrides(preset, vocabulary_sizes, overrides):
    """Refuses values of another type than those that they replace."""
    given = {"name": "preset", "source_vocabulary_size": "data"}
    given["target_vocabulary_size"] = "data"
    function = get_preset(preset)
    defaults = _argument_defaults(function, vocabulary_sizes)
    for key, value in overrides.items():
        if key in given:
            raise UserError(
                f"`overrides.{key}` cannot be set: it is that of the "
                f"{given[key]}. Leave it out."
            )
        for kind, word in _KINDS:
            if isinstance(defaults.get(key), kind):
                if value is None or _is_of_kind(value, kind):
                    break
                raise UserError(
                    f"`overrides.{key}` must be {word}. Received: {value!r}"
                )


def _argument_defaults(preset, vocabulary_sizes):
    if not hasattr(preset, "arguments"):
        return {}
    parameters = inspect.signature(preset.model).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters}
    return defaults | preset.arguments(*vocabulary_sizes)


def _is_of_kind(value, kind):
    if kind is bool or isinstance(value, bool):
        return isinstance(value, kind) and kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def compile_model(
    recipe: Recipe, model: keras.Model, **options: Any
) -> list[str]:
    """Compiles a model with the optimizer, schedule and loss of a recipe.

    `options` are those of `objective_options.compile_options`.

    Returns:
        The paths of the weights that the recipe freezes.

    Raises:
        UserError: if a pattern of `training.freeze` matches no weight, or the
            backend cannot count updates in float16.
    """
    training = recipe.training
    _check_dtype(recipe)
    try:
        frozen = freeze(model, training.freeze)
    except UserError as error:
        raise UserError(f"recipe {recipe.name}, `training`: {error}") from error
    with refused_values(f"recipe {recipe.name}, `training`"):
        optimizer = _optimizer(training, model)
        model.compile(
            optimizer=optimizer,
            loss=make_loss(recipe),
            jit_compile=training.jit_compile,
            gradient_accumulation_steps=training.gradient_accumulation_steps,
            **options,
        )
    optimizer.build(model.trainable_variables)
    return frozen


def _check_dtype(recipe):
    if (
        recipe.training.dtype_policy == "mixed_float16"
        and keras.config.backend() != "tensorflow"
    ):
        raise UserError(
            f"recipe {recipe.name}: `training.dtype_policy` must not be "
            "mixed_float16 on this backend, where skipped updates are not "
            f"counted. Received: KERAS_BACKEND={keras.config.backend()}. Use "
            "mixed_bfloat16."
        )


def _optimizer(training, model):
    rule = training.optimizer
    rate = _schedule(training.learning_rate, model, training.steps)
    options = {
        "global_clipnorm": rule.global_clipnorm,
        "average_momentum": rule.average_momentum,
    }
    if rule.name == "nesterov":
        return Nesterov(rate, rule.momentum, **options)
    if rule.name == "muon":
        return Muon(
            rate,
            momentum=rule.momentum,
            adam_beta_1=rule.beta_1,
            adam_beta_2=rule.beta_2,
            epsilon=rule.epsilon,
            **options,
        )
    options |= {
        "beta_1": rule.beta_1,
        "beta_2": rule.beta_2,
        "epsilon": rule.epsilon,
    }
    if rule.name == "adamw":
        return AdamW(rate, weight_decay=rule.weight_decay, **options)
    return Adam(rate, **options)


def _schedule(rate, model, steps):
    if rate.schedule == "noam":
        width = model.get_config()["hidden_dim"]
        return InverseSquareRoot.noam(width, rate.warmup_steps, rate.scale)
    if rate.schedule == "inverse_square_root":
        return InverseSquareRoot(rate.peak, rate.warmup_steps)
    if rate.schedule in ("linear", "cosine"):
        return DecayToZero(rate.peak, rate.warmup_steps, steps, rate.schedule)
    return WarmUp(Constant(rate.peak), rate.warmup_steps)


def plan_batches(
    recipe: Recipe, data: PreparedData, num_replicas: int = 1
) -> BatchPlan:
    """Chooses the shapes and the order of all training batches.

    `num_replicas` is the number of devices that share a batch's rows evenly.
    """
    lengths = planned_lengths(recipe, data)
    training = recipe.training
    weights = row_weights(data.manifest)
    arguments = (
        lengths,
        training.batch_tokens,
        training.max_shapes or shapes_for_updates(training.steps),
        num_replicas * training.gradient_accumulation_steps,
    )
    batch_shapes = choose_batch_shapes(*arguments, weights)
    return BatchPlan(lengths, batch_shapes, recipe.seed, weights)


def plan_validation(
    recipe: Recipe, data: PreparedData, plan: BatchPlan, num_replicas: int = 1
) -> BatchPlan | None:
    """Plans the validation batches, or returns `None` without that split.

    They have the shapes of the training batches, with fewer rows if a batch is
    computed in parts: about those of a part, so that they fit in memory too.
    `plan` is that of training.
    """
    if "valid" not in data.splits:
        return None
    training = recipe.training
    parts = training.gradient_accumulation_steps
    # `fit` fills up the rows to a multiple of this, in validation as well.
    multiple = num_replicas * parts
    part_shapes = [
        replace(
            shape,
            batch_size=max(
                multiple, shape.batch_size // parts // multiple * multiple
            ),
        )
        for shape in plan.batch_shapes
    ]
    return validation_plan(
        data.store("valid").lengths,
        part_shapes,
        multiple,
        # Without XLA nothing is compiled for a shape.
        -(-training.steps // training.validate_every)
        if training.jit_compile
        else None,
    )


def describe_long_pairs(model: keras.Model, data: PreparedData) -> list[str]:
    """Tells in a line per split how many pairs exceed the model's `max_length`.

    Without such pairs the list is empty.
    """
    lines = []
    for split in ("train", "valid"):
        if split not in data.splits:
            continue
        lengths = data.store(split).lengths
        long_pairs, longest = 0, 0
        for start in range(0, len(lengths), _ROWS_AT_A_TIME):
            longer_side = lengths[start : start + _ROWS_AT_A_TIME].max(axis=1)
            long_pairs += int((longer_side > model.max_length).sum())
            longest = max(longest, int(longer_side.max()))
        if long_pairs:
            lines.append(
                f"{long_pairs:,} of {len(lengths):,} pairs of "
                f"`{split}` are longer than the model's `max_length` of "
                f"{model.max_length:,} tokens (the longest has {longest:,}). "
                "Learned positions end there, so all tokens beyond have the "
                "same one, and a translator cuts its source there. Set "
                "`model.overrides.max_length`, or prepare the data with a "
                "smaller `max_tokens`."
            )
    return lines


def average_checkpoints(
    recipe: Recipe,
    run: RunFolder,
    sizes: Mapping[str, Any],
    folder: Path,
    **chosen: int,
) -> tuple[keras.Model, list[int]]:
    """Builds the model whose weights are the mean of several checkpoints.

    The mean is written to a temporary file in `folder`, to which no other
    process may write. `chosen` is `last=N` or `best=N`, see
    `CheckpointStore.average`.

    Returns:
        The model and the steps averaged.
    """
    file = folder / ".average.weights.h5"
    try:
        steps = run.checkpoints().average(file, **chosen)
        model = build_model(recipe, sizes)
        model.load_weights(file)
    finally:
        file.unlink(missing_ok=True)
    return model, steps


def load_checkpoint(
    recipe: Recipe, sizes: Mapping[str, Any], folder: Path
) -> keras.Model:
    """Builds the model of one checkpoint, not compiled.

    Its weights are the moving average if the recipe keeps one.

    Raises:
        UserError: if the checkpoint is damaged.
    """
    if fault := checkpoint_fault(folder):
        raise UserError(fault)
    trained = build_model(recipe, sizes)
    compile_model(recipe, trained)
    trained.load_weights(folder / WEIGHTS_FILE)
    take_averages(trained)
    # Not compiled: an optimizer would be saved with the model.
    model = build_model(recipe, sizes)
    model.set_weights(trained.get_weights())
    return model


def final_model(
    recipe: Recipe, run: RunFolder, sizes: Mapping[str, Any]
) -> tuple[keras.Model, list[int]]:
    """Builds the final model of a run, as `training.final_model` chooses it.

    If the recipe keeps a moving average of the weights, it is that of the
    chosen checkpoint.

    Returns:
        The model and the steps of the checkpoints used.
    """
    training, store = recipe.training, run.checkpoints()
    number, bests = training.average_checkpoints, []
    if training.final_model != "average_last":
        number = 1 if training.final_model == "best" else number
        bests = store.bests()[:number]
        if not bests:
            _logger.warning(
                "%s: no validation gave a value, so the last checkpoints "
                "become the final model.",
                run.directory,
            )
    if training.optimizer.average_momentum is None:
        # A short run may have fewer checkpoints than it should average.
        last = min(number, len(store.steps()))
        chosen = {"best": len(bests)} if bests else {"last": last}
        return average_checkpoints(recipe, run, sizes, run.directory, **chosen)
    step = bests[0].step if bests else store.latest()
    if step is None:
        raise UserError(f"{store.directory}: holds no undamaged checkpoint.")
    path = bests[0].path if bests else store.path(step)
    return load_checkpoint(recipe, sizes, path), [step]
