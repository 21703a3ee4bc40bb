"""Breaks runs off, and reads what their checkpoints hold."""

import h5py
import numpy as np

from keras_deepnmt.training.checkpoints import CheckpointStore


class fails_at:
    """Makes a checkpoint fail before it is written, once."""

    def __init__(self, monkeypatch, step, error):
        self.save, self.step, self.error = CheckpointStore.save, step, error
        monkeypatch.setattr(CheckpointStore, "save", self.replace())

    def replace(self):
        def save(store, model, step):
            if step == self.step and self.error is not None:
                error, self.error = self.error, None
                raise error
            return self.save(store, model, step)

        return save


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
