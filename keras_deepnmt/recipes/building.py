"""Builds what a recipe describes: the model, its optimizer, its batches."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.cells import choose_cells
from keras_deepnmt.data.manifest import row_weights
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.optimizers import Adam, AdamW, Nesterov
from keras_deepnmt.training.schedules import (
    Constant,
    InverseSquareRoot,
    WarmUp,
)
from keras_deepnmt.zoo import create_model


def build_model(recipe: Recipe, sizes: Mapping[str, Any]) -> keras.Model:
    """Builds a recipe's model for a prepared corpus.

    Args:
        recipe: the recipe.
        sizes: holds `source_vocabulary_size` and `target_vocabulary_size`, as
            a prepared folder's manifest and `run.json` do.

    Returns:
        The model, not compiled.

    Raises:
        UserError: if the preset is unknown or refuses an override.
    """
    try:
        return create_model(
            recipe.model.preset,
            sizes["source_vocabulary_size"],
            sizes["target_vocabulary_size"],
            **{
                "dtype": recipe.training.dtype_policy,
                **recipe.model.overrides,
            },
        )
    except (TypeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise UserError(f"recipe {recipe.name}, `model`: {message}") from error


def compile_model(recipe: Recipe, model: keras.Model) -> None:
    """Gives a model the optimizer, schedule and loss of a recipe.

    Args:
        recipe: the recipe.
        model: the model.
    """
    training = recipe.training
    optimizer = _optimizer(training)
    model.compile(
        optimizer=optimizer,
        loss=LabelSmoothedCrossEntropy(training.label_smoothing),
        jit_compile=training.jit_compile,
        gradient_accumulation_steps=training.gradient_accumulation_steps,
    )
    optimizer.build(model.trainable_variables)


def _optimizer(training):
    rule = training.optimizer
    rate = _schedule(training.learning_rate)
    if rule.name == "nesterov":
        return Nesterov(
            rate, rule.momentum, global_clipnorm=rule.global_clipnorm
        )
    options = {
        "beta_1": rule.beta_1,
        "beta_2": rule.beta_2,
        "epsilon": rule.epsilon,
        "global_clipnorm": rule.global_clipnorm,
    }
    if rule.name == "adamw":
        return AdamW(rate, weight_decay=rule.weight_decay, **options)
    return Adam(rate, **options)


def _schedule(rate):
    if rate.schedule == "inverse_square_root":
        return InverseSquareRoot(rate.peak, rate.warmup_steps)
    return WarmUp(Constant(rate.peak), rate.warmup_steps)


def plan_batches(
    recipe: Recipe, data: PreparedData, num_replicas: int = 1
) -> BatchPlan:
    """Chooses the shapes and the order of all batches.

    Args:
        recipe: the recipe.
        data: the corpus.
        num_replicas: devices that share a batch's rows evenly.

    Returns:
        The plan.
    """
    lengths = data.store("train").lengths
    training = recipe.training
    cells = choose_cells(
        lengths,
        training.batch_tokens,
        training.max_shapes,
        num_replicas * training.gradient_accumulation_steps,
    )
    weights = row_weights(data.manifest)
    return BatchPlan(lengths, cells, recipe.seed, weights)


def average_into(
    recipe: Recipe, run: RunFolder, sizes: Mapping[str, Any], last: int
) -> tuple[keras.Model, list[int]]:
    """Builds the model whose weights are the mean of the last checkpoints.

    Args:
        recipe: the recipe.
        run: the run's folder.
        sizes: holds `source_vocabulary_size` and `target_vocabulary_size`.
        last: how many checkpoints.

    Returns:
        Tuple of the model and the steps averaged.
    """
    store = run.checkpoints()
    file = run.directory / ".average.weights.h5"
    try:
        steps = store.average(file, last=last)
        model = build_model(recipe, sizes)
        model.load_weights(file)
    finally:
        file.unlink(missing_ok=True)
    return model, steps
