"""Builds the model, the optimizer and the batch plan of a recipe."""

import inspect
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    choose_batch_shapes,
    shapes_for_updates,
)
from keras_deepnmt.data.batches.continued_plan import ContinuedPlan
from keras_deepnmt.data.batches.datasets import validation_plan
from keras_deepnmt.data.batches.staged_plan import StagedPlan
from keras_deepnmt.data.manifest import row_weights
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.models import ConvSeq2Seq
from keras_deepnmt.models.conv_seq2seq_layers import BY_LAYER
from keras_deepnmt.models.slot_layers import SLOT_PURPOSES
from keras_deepnmt.own_code.loading import describe_own_error
from keras_deepnmt.own_code.lookup import (
    find_own,
    is_class_name,
    make_own,
    own_names,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.recipes.training_schema import TrainingRecipe
from keras_deepnmt.runs.changes import batches_of
from keras_deepnmt.runs.objective_options import (
    compile_options,
    make_loss,
    make_terms,
    planned_lengths,
)
from keras_deepnmt.runs.precision import fastest_precision
from keras_deepnmt.runs.run_code import use_code_of
from keras_deepnmt.runs.stages import stage_weights, training_pairs
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.training.optimizers import Adam, AdamW, Muon, Nesterov
from keras_deepnmt.training.schedules import (
    Constant,
    DecayToZero,
    InverseSquareRoot,
    WarmUp,
)
from keras_deepnmt.training.transfer import freeze
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
    """
    use_code_of(recipe)
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
        try:
            return create_model(
                preset,
                *vocabulary_sizes,
                **{"dtype": _dtype(recipe), **overrides},
            )
        except AttributeError as error:
            if describe_own_error(error) is None:
                raise
            mistake = error
    raise mistake  # in the user's own code: the caller names its line


def _dtype(recipe):
    """The policy of a recipe's model; `auto` is open until a run begins."""
    precision = recipe.training.precision
    return fastest_precision()[0] if precision == "auto" else precision


def _check_overrides(preset, vocabulary_sizes, overrides):
    """Refuses values of another type than those that they replace.

    Layers in slots that are given by name are left to the model.
    """
    given = {"name": "preset", "source_vocabulary_size": "data"}
    given["target_vocabulary_size"] = "data"
    function = get_preset(preset)
    defaults = _argument_defaults(function, vocabulary_sizes)
    by_layer = _arguments_by_layer(function)
    for key, value in overrides.items():
        if key in given:
            raise UserError(
                f"`overrides.{key}` cannot be set: it comes from the "
                f"{given[key]}. Leave it out."
            )
        if key in SLOT_PURPOSES and isinstance(value, str | Mapping):
            continue
        is_list = key in by_layer and isinstance(value, list | tuple)
        for kind, word in _KINDS:
            if isinstance(defaults.get(key), kind):
                values = value if is_list else [value]
                if value is None or all(_is_of_kind(v, kind) for v in values):
                    break
                more = ", or a list of one for each layer" * (key in by_layer)
                raise UserError(
                    f"`overrides.{key}` must be {word}{more}. Received: "
                    f"{value!r}"
                )


def _arguments_by_layer(preset):
    """The arguments of a preset that may be lists with a value per layer."""
    model = getattr(preset, "model", None)
    is_conv = inspect.isclass(model) and issubclass(model, ConvSeq2Seq)
    return BY_LAYER if is_conv else ()


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

    `options` are those of `objective_options.compile_options`. Returns the
    paths of the weights that the recipe freezes.
    """
    frozen = _compile(recipe, model, **options)
    model.optimizer.build(model.trainable_variables)
    return frozen


def check_model(recipe: Recipe) -> None:
    """Refuses a model, an objective or an optimizer that cannot be made.

    That takes no data: each vocabulary has a few pieces.
    """
    sizes = {f"{side}_vocabulary_size": 11 for side in ("source", "target")}
    _compile(recipe, build_model(recipe, sizes))
    make_terms(recipe)


def _compile(recipe, model, **options):
    """Compiles a model whose optimizer has no state yet."""
    training = recipe.training
    _check_dtype(recipe)
    try:
        frozen = freeze(model, training.freeze)
    except UserError as error:
        raise UserError(f"recipe {recipe.name}, `training`: {error}") from error
    with refused_values(f"recipe {recipe.name}, `training`"):
        model.compile(
            optimizer=make_optimizer(training, model),
            loss=make_loss(recipe),
            jit_compile=training.jit_compile,
            gradient_accumulation_steps=training.gradient_accumulation_steps,
            activation_checkpointing=training.activation_checkpointing,
            **options,
        )
    return frozen


def _check_dtype(recipe):
    if (
        recipe.training.precision == "mixed_float16"
        and keras.config.backend() != "tensorflow"
    ):
        raise UserError(
            f"recipe {recipe.name}: `training.precision` must not be "
            "mixed_float16 on this backend, where skipped updates are not "
            f"counted. Received: KERAS_BACKEND={keras.config.backend()}. Use "
            "mixed_bfloat16."
        )


def make_optimizer(
    training: TrainingRecipe, model: keras.Model
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a recipe, with its schedule, for a model."""
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
        if not isinstance(width, int):
            raise ValueError(
                "`learning_rate.schedule` must not be noam for a model whose "
                "layers differ in width, since its peak comes from one width. "
                f"Received: hidden_dim={width}. Use inverse_square_root, with "
                "a `peak`."
            )
        return InverseSquareRoot.noam(width, rate.warmup_steps, rate.scale)
    if rate.schedule == "inverse_square_root":
        return InverseSquareRoot(rate.peak, rate.warmup_steps)
    if rate.schedule in ("linear", "cosine"):
        return DecayToZero(rate.peak, rate.warmup_steps, steps, rate.schedule)
    if is_class_name(rate.schedule):
        return _own_schedule(rate)
    return WarmUp(Constant(rate.peak), rate.warmup_steps)


def _own_schedule(rate):
    kind = keras.optimizers.schedules.LearningRateSchedule
    found = find_own(rate.schedule, kind)
    if found is None:
        raise ValueError(
            f'`learning_rate.schedule`: no imported file has "{rate.schedule}".'
            f"{did_you_mean(rate.schedule, own_names(kind))}"
        )
    return make_own(found, rate.schedule_options)


def build_for_training(
    recipe: Recipe,
    data: PreparedData,
    strategy: Any,
    say: Callable[[str], None],
) -> keras.Model:
    """Builds and compiles the model of a recipe in the strategy's scope.

    `say` prints the number of frozen weights. Warnings are logged.
    """
    keras.utils.set_random_seed(recipe.seed)
    with strategy.scope():
        model = build_model(recipe, data.manifest)
        frozen = compile_model(recipe, model, **compile_options(recipe, data))
    if frozen:
        say(_describe_frozen(model, frozen))
    for warning in describe_long_pairs(model, data):
        _logger.warning(warning)
    return model


def _describe_frozen(model, frozen):
    all_parameters = model.count_params()
    frozen_parameters = all_parameters - sum(
        math.prod(v.shape) for v in model.trainable_variables
    )
    return (
        f"{len(frozen)} weights are frozen: {frozen_parameters:,} of "
        f"{all_parameters:,} parameters do not train."
    )


def batch_options(recipe: Recipe, num_replicas: int = 1) -> dict[str, Any]:
    """Returns what the batches depend on besides the data and the seed.

    Runs record it. `num_replicas` is the number of devices that share a
    batch's rows evenly.
    """
    training = recipe.training
    return {
        "batch_tokens": training.batch_tokens,
        "max_shapes": training.max_shapes or shapes_for_updates(training.steps),
        "batch_multiple": num_replicas * training.gradient_accumulation_steps,
        "subword_sampling": training.subword_sampling,
    }


def plan_batches(
    recipe: Recipe, data: PreparedData, num_replicas: int = 1
) -> BatchPlan:
    """Chooses the shapes and the order of all training batches.

    If the options of the batches have changed in the run, as `resolved` says,
    the batches of each stretch of it are those of its options. With stages they
    must not change.
    """
    present = batch_options(recipe, num_replicas)
    if recipe.training.stages:
        return _plan_stages(recipe, data, present)
    weights = row_weights(data.manifest)
    plan, start = None, 0
    stretches = batches_of(recipe.resolved)
    for until, options in [*stretches, (None, present)]:
        alpha = options["subword_sampling"]
        lengths = planned_lengths(recipe, data, alpha)
        shapes = choose_batch_shapes(
            lengths,
            options["batch_tokens"],
            options["max_shapes"],
            options["batch_multiple"],
            weights,
        )
        if plan is None:
            plan = BatchPlan(lengths, shapes, recipe.seed, weights)
        else:
            plan = ContinuedPlan(plan, start, lengths, shapes, weights)
        start = until
    return plan


def _plan_stages(recipe, data, options):
    if batches_of(recipe.resolved):
        raise UserError(
            f"recipe {recipe.name}: the batches of a run with "
            "`training.stages` cannot change after its first update. Give the "
            "values and the number of devices that it has had, or use another "
            "run folder."
        )
    pairs = training_pairs(recipe, data)
    lengths = pairs.lengths
    if options["subword_sampling"] is not None:
        lengths = planned_lengths(recipe, data, options["subword_sampling"])
    weights = stage_weights(recipe, data, pairs)
    shapes = choose_batch_shapes(
        lengths,
        options["batch_tokens"],
        options["max_shapes"],
        options["batch_multiple"],
        np.mean(weights, axis=0),
    )
    return StagedPlan(lengths, shapes, recipe.seed, weights)


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
                "Learned positions end there, so all later tokens have the "
                "last one, and a translator truncates sources there. Set "
                "`model.overrides.max_length`, or prepare the data with a "
                "smaller `max_tokens`."
            )
    return lines
