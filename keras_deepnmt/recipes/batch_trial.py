"""Two updates of a recipe's largest batches: a process that may die of it.

python -m keras_deepnmt.recipes.batch_trial RECIPE PREPARED
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.batch_search import DOES_NOT_FIT
from keras_deepnmt.recipes.building import (
    build_model,
    compile_model,
    plan_batches,
)
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.training.strategies import make_strategy


def largest_batch_shapes(
    batch_shapes: Sequence[BatchShape],
) -> list[BatchShape]:
    """Chooses the batch shapes that may need the most memory.

    Activations grow with a batch's tokens, scores with its target tokens, and
    attention with its rows times the square of its length.

    Args:
        batch_shapes: all shapes of training.

    Returns:
        At most three of them.

    Example:
    >>> shapes = [BatchShape(4, 9, 9), BatchShape(9, 4, 4), BatchShape(2, 4, 9)]
    >>> largest_batch_shapes(shapes)
    [BatchShape(batch_size=4, source_length=9, target_length=9)]
    """
    sizes = (
        lambda shape: shape.num_tokens,
        lambda shape: shape.batch_size * shape.target_length,
        lambda shape: (
            shape.batch_size
            * max(shape.source_length, shape.target_length) ** 2
        ),
    )
    return sorted({max(batch_shapes, key=size) for size in sizes})


def try_updates(recipe_file: Path, prepared_dir: Path) -> None:
    """Makes two updates of each of the largest batch shapes, without padding.

    Args:
        recipe_file: a recipe with a number of `batch_tokens`.
        prepared_dir: the prepared corpus.
    """
    recipe = load_recipe(recipe_file)
    data = PreparedData(prepared_dir)
    training = recipe.training
    strategy = make_strategy(training.strategy, training.replicas)
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    with strategy.scope():
        model = build_model(recipe, data.manifest)
        compile_model(recipe, model)
        for batch_shape in largest_batch_shapes(plan.batch_shapes):
            batch = _full_batch(batch_shape)
            endless = (batch for _ in itertools.count())
            model.fit(endless, steps_per_epoch=2, verbose=0)


def _full_batch(shape):
    source = np.full((shape.batch_size, shape.source_length), 3, "int32")
    target = np.full((shape.batch_size, shape.target_length), 3, "int32")
    return {"source_ids": source, "target_ids": target}, target


def main(words: Sequence[str]) -> int:
    """Tries, and tells by the exit code whether it fits.

    Args:
        words: the recipe's file and the prepared folder.

    Returns:
        0, or `DOES_NOT_FIT`.
    """
    try:
        try_updates(*map(Path, words))
    except MemoryError:
        return DOES_NOT_FIT
    except Exception as error:
        said = f"{type(error).__name__} {error}"
        if "RESOURCE_EXHAUSTED" in said or "ResourceExhausted" in said:
            return DOES_NOT_FIT
        raise
    return 0


if __name__ == "__main__":
    # TensorFlow's own messages would hide what went wrong.
    keras.utils.disable_interactive_logging()
    sys.exit(main(sys.argv[1:]))
