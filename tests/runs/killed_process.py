"""Trains a recipe and kills its own process at a chosen moment.

    killed_process.py RECIPE RUN_DIR PREPARED_DIR MOMENT NUMBER [SEARCH]

At the moment `"update"` update NUMBER has just been made; at `"checkpoint"`
the weights of the NUMBERth checkpoint are half written. With `"spared"` as
SEARCH, BLEU costs no search, but depends on the weights.
"""

import os
import signal
import sys
from pathlib import Path

import keras
from broken_runs import translate_by_weights

from keras_deepnmt.runs.train import train
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.translator import Translator


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after_update(number):
    notice = ThroughputProgress.on_train_batch_end

    def noticed(progress, batch, logs=None):
        notice(progress, batch, logs)
        if progress._step == number:
            kill()

    ThroughputProgress.on_train_batch_end = noticed


def kill_in_checkpoint(number):
    save, written = keras.Model.save_weights, []

    def save_half(model, file, **options):
        save(model, file, **options)
        written.append(file)
        if len(written) == number:
            os.truncate(file, os.path.getsize(file) // 2)
            kill()

    keras.Model.save_weights = save_half


if __name__ == "__main__":
    recipe_file, run_dir, prepared_dir, moment, number, *search = sys.argv[1:]
    if search == ["spared"]:
        Translator.translate = translate_by_weights
    {"update": kill_after_update, "checkpoint": kill_in_checkpoint}[moment](
        int(number)
    )
    train(recipe_file, Path(run_dir), prepared_dir=prepared_dir, quiet=True)
