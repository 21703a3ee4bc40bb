"""Makes two updates of a recipe's largest batches, to see if they fit.

python -m keras_deepnmt.runs.batch_trial RECIPE PREPARED
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.own_code.loading import allow_code
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.batch_size import DOES_NOT_FIT
from keras_deepnmt.runs.build import build_for_training, plan_batches
from keras_deepnmt.runs.objective_options import uses_given_alignments
from keras_deepnmt.training.strategies import make_strategy


def largest_batch_shapes(
    batch_shapes: Sequence[BatchShape],
) -> list[BatchShape]:
    """Chooses the batch shapes, at most three, that may need the most memory.

    Activations grow with a batch's tokens, scores with its target tokens, and
    attention with its rows times the square of its length.
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
    """Makes two updates of each of the largest batch shapes, no padding.

    They are the updates of the run, with its objective, teacher, optimizer and
    parts of a batch. The recipe must give a number of `batch_tokens`.
    """
    recipe = load_recipe(recipe_file)
    allow_code(recipe.import_)  # the run that asks has the consent
    data = PreparedData(prepared_dir)
    training = recipe.training
    strategy = make_strategy(training.strategy, training.replicas)
    plan = plan_batches(recipe, data, strategy.num_replicas_in_sync)
    # The teacher, a second forward and their scores need memory, too.
    model = build_for_training(recipe, data, strategy, say=lambda text: None)
    for batch_shape in largest_batch_shapes(plan.batch_shapes):
        aligned = uses_given_alignments(recipe, data)
        batch = _full_batch(batch_shape, aligned)
        endless = (batch for _ in itertools.count())
        model.fit(endless, steps_per_epoch=2, verbose=0)


def _full_batch(shape, aligned):
    source = np.full((shape.batch_size, shape.source_length), 3, "int32")
    target = np.full((shape.batch_size, shape.target_length), 3, "int32")
    inputs = {"source_ids": source, "target_ids": target}
    if aligned:
        sizes = shape.batch_size, shape.target_length, shape.source_length
        inputs["alignments"] = np.ones(sizes, "uint8")
    return inputs, target


def main(words: Sequence[str]) -> int:
    """Returns 0 if the updates fit in memory, otherwise `DOES_NOT_FIT`.

    `words` are the recipe's file and the prepared folder.
    """
    try:
        try_updates(*map(Path, words))
    except MemoryError:
        return DOES_NOT_FIT
    except Exception as error:
        message = f"{type(error).__name__} {error}"
        if "RESOURCE_EXHAUSTED" in message or "ResourceExhausted" in message:
            return DOES_NOT_FIT
        raise
    return 0


if __name__ == "__main__":
    # TensorFlow's progress output would hide the error message.
    keras.utils.disable_interactive_logging()
    sys.exit(main(sys.argv[1:]))
