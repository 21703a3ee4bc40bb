"""Counts how often a run on JAX takes the weights out of the training step.

Run as a program with `KERAS_BACKEND=jax`. Its argument is a recipe file. It
trains the recipe for six and for twelve updates, with one validation, and
prints how often the weights were taken out in each.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras

from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator


def times_taken_out(updates, folder):
    """How often callbacks ask for the weights in a run of some updates."""
    count = 0
    copy_back = keras.Model.jax_state_sync

    def counted(model):
        nonlocal count
        count += 1
        copy_back(model)

    keras.Model.jax_state_sync = counted
    changes = {
        "training.steps": updates,
        "training.validate_every": updates,
        "training.checkpoint_every": updates,
        "training.average_checkpoints": 1,
        "training.max_shapes": 1,
        "training.jit_compile": True,
    }
    train(load_recipe(sys.argv[1], changes), folder / str(updates), quiet=True)
    keras.Model.jax_state_sync = copy_back
    return count


# Translations have no influence on what is counted.
Translator.translate = lambda translator, texts: list(texts)
with tempfile.TemporaryDirectory() as folder:
    found = [times_taken_out(updates, Path(folder)) for updates in (6, 12)]
print(json.dumps(found))
