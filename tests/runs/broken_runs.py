"""Interrupts runs, replaces their searches, reads their checkpoints."""

import hashlib
import random

import h5py
import numpy as np

from keras_deepnmt.evaluation.bleu_callback import BleuCallback
from keras_deepnmt.models.training_step.training_state import update_count
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.translator import Hypothesis


class fails_at:
    """Makes a checkpoint fail before it is written, once."""

    def __init__(self, monkeypatch, step, error):
        self.save, self.step, self.error = CheckpointStore.save, step, error
        monkeypatch.setattr(CheckpointStore, "save", self.replace())

    def replace(self):
        def save(store, model, step, **options):
            if step == self.step and self.error is not None:
                error, self.error = self.error, None
                raise error
            return self.save(store, model, step, **options)

        return save


def interrupt_after(monkeypatch, step):
    """Ctrl-C when an update has been made, before callbacks save it."""
    notice = ThroughputProgress.on_train_batch_end

    def noticed(progress, batch, logs=None):
        notice(progress, batch, logs)
        if progress._step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(ThroughputProgress, "on_train_batch_end", noticed)


def interrupt_validation(monkeypatch, step):
    """Ctrl-C while the validation after an update translates, once."""
    validate, interrupts = BleuCallback.on_epoch_end, [KeyboardInterrupt()]

    def interrupted(bleu, epoch, logs=None):
        if update_count(bleu.model) == step and interrupts:
            raise interrupts.pop()
        validate(bleu, epoch, logs)

    monkeypatch.setattr(BleuCallback, "on_epoch_end", interrupted)


def best_of_translate(translator, texts, num_hypotheses):
    """In the place of an n-best search: what `translate` returns."""
    return [
        [Hypothesis(text, 0.0, 0.0, ())] for text in translator.translate(texts)
    ]


def translate_by_weights(translator, texts, **_):
    """In the place of a search: some words of each text, drawn by the weights.

    Equal weights have an equal BLEU, others another one.
    """
    digest = hashlib.sha256()
    for weight in translator.model.get_weights():
        digest.update(weight.tobytes())
    draw = random.Random(digest.digest())
    return [
        " ".join(word for word in text.split() if draw.random() < 0.7)
        for text in texts
    ]


def arrays(file):
    """All arrays of a weights file, the optimizer's among them."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(file) as opened:
        opened.visititems(visit)
    return found


def checkpoint(run_dir, step):
    folder = run_dir / "checkpoints" / f"step-{step:08d}"
    with np.load(folder / "state.npz") as states:
        seeds = {name: states[name] for name in states.files}
    return {**arrays(folder / "model.weights.h5"), **seeds}
