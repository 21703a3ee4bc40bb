"""Checkpoints that are whole or absent, and the mean of the last few."""

import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.training.averaging import write_mean

_WEIGHTS = "model.weights.h5"
_STATE = "state.npz"
_SEAL = "checkpoint.json"


class CheckpointStore:
    """Keeps the last checkpoints of a training run in one folder.

    A checkpoint is a folder `step-00001500` with the weights and the optimizer
    (Keras' own file), the states that file leaves out (random seeds), and
    `checkpoint.json` with the step and the SHA-256 of the others. It is written
    under another name and renamed when it is complete, so that a killed run, a
    full disk or Ctrl-C leaves the previous ones untouched.

    Args:
        directory: folder of the checkpoints; made when it is missing.
        keep: how many checkpoints stay; older ones are deleted. `None` keeps
            all.

    Raises:
        ValueError: if `keep` is below one.

    Example:
    >>> store = keras_deepnmt.training.CheckpointStore("run/checkpoints", 2)
    >>> store.latest() is None
    True
    """

    def __init__(self, directory: str | Path, keep: int | None = None):
        if keep is not None and keep < 1:
            raise ValueError(
                f"`keep` must be at least 1. Received: keep={keep}"
            )
        self.directory = Path(directory)
        self.keep = keep

    def steps(self) -> list[int]:
        """Lists the steps that have a finished checkpoint, oldest first.

        Returns:
            Steps in rising order; damage inside a file is not looked for.
        """
        seals = self.directory.glob(f"step-*/{_SEAL}")
        return sorted(int(seal.parent.name.split("-")[1]) for seal in seals)

    def path(self, step: int) -> Path:
        """Names the folder of one checkpoint.

        Args:
            step: number of updates made.

        Returns:
            The folder, which need not exist.
        """
        return self.directory / f"step-{step:08d}"

    def save(self, model: keras.Model, step: int) -> Path:
        """Writes one checkpoint and deletes those beyond `keep`.

        Args:
            model: a built model; its optimizer is saved with it.
            step: number of updates made.

        Returns:
            The checkpoint's folder.

        Raises:
            UserError: if the disk is full or cannot be written; the previous
                checkpoints are untouched then.
        """
        final = self.path(step)
        partial = self.directory / f".{final.name}.partial"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            model.save_weights(partial / _WEIGHTS)
            np.savez(partial / _STATE, *_unsaved_state(model))
            seal = {
                "step": step,
                "sha256": {
                    name: _sha256(partial / name) for name in (_WEIGHTS, _STATE)
                },
            }
            _write_text(partial / _SEAL, json.dumps(seal, indent=2))
            if final.exists():
                self.delete(step)
            os.replace(partial, final)
        except (OSError, RuntimeError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._write_error(step, error) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        if self.keep is not None:
            for old in self.steps()[: -self.keep]:
                self.delete(old)
        return final

    def delete(self, step: int) -> None:
        """Removes one checkpoint.

        Args:
            step: number of updates made.
        """
        # Without its seal it no longer counts, should the rest be interrupted.
        (self.path(step) / _SEAL).unlink(missing_ok=True)
        shutil.rmtree(self.path(step))

    def latest(self) -> int | None:
        """Finds the newest undamaged checkpoint.

        A damaged one is passed over with a warning and the one before it taken.

        Returns:
            Its step, or `None` when there is none.
        """
        for step in reversed(self.steps()):
            fault = self._fault(step)
            if fault is None:
                return step
            warnings.warn(
                f"{fault} Taking the checkpoint before it.", stacklevel=2
            )
        return None

    def restore(
        self, model: keras.Model, step: int | None = None
    ) -> int | None:
        """Puts weights, optimizer and random states back into a model.

        Args:
            model: a built and compiled model of the same recipe.
            step: which checkpoint; the newest undamaged one by default.

        Returns:
            The step to go on from, or `None` when there is no checkpoint.

        Raises:
            UserError: if the checkpoint named is missing or damaged, or belongs
                to another model.
        """
        if step is None:
            step = self.latest()
            if step is None:
                return None
        elif fault := self._fault(step):
            raise UserError(fault)
        folder = self.path(step)
        optimizer = getattr(model, "optimizer", None)
        if optimizer is not None and not optimizer.built:
            optimizer.build(model.trainable_variables)
        try:
            model.load_weights(folder / _WEIGHTS)
        except (ValueError, KeyError) as error:
            raise UserError(
                f"{folder / _WEIGHTS}: these weights belong to another model "
                f"({str(error).splitlines()[0]}) Use the recipe they were "
                "trained with."
            ) from error
        with np.load(folder / _STATE) as arrays:
            values = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
        variables = _unsaved_variables(model)
        if len(variables) != len(values):
            raise UserError(
                f"{folder / _STATE}: holds {len(values)} random states, the "
                f"model has {len(variables)}. Use the recipe it was trained "
                "with."
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return step

    def average(
        self,
        output: str | Path,
        *,
        last: int | None = None,
        steps: list[int] | None = None,
    ) -> list[int]:
        """Writes the mean of several checkpoints' weights to one file.

        One pass over the checkpoints, one array of the model at a time, summed
        in float64; the optimizer is left out.

        Args:
            output: file to write; its name must end in `.weights.h5`.
            last: how many of the newest checkpoints; all when neither is given.
            steps: the steps to take, instead of `last`.

        Returns:
            The steps averaged.

        Raises:
            UserError: if there are fewer checkpoints than asked for, or one is
                damaged.
        """
        present = self.steps()
        if steps is None:
            if not present or (last is not None and len(present) < last):
                raise UserError(
                    f"{self.directory}: has {len(present)} checkpoints, "
                    f"{last or 1} are to be averaged. Train further or average "
                    "fewer."
                )
            steps = present if last is None else present[-last:]
        for step in steps:
            if fault := self._fault(step):
                raise UserError(fault)
        write_mean([self.path(step) / _WEIGHTS for step in steps], output)
        return steps

    def _fault(self, step: int) -> str | None:
        """What is wrong with a checkpoint, in one sentence."""
        folder = self.path(step)
        try:
            seal = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
            for name, expected in seal["sha256"].items():
                if _sha256(folder / name) != expected:
                    return (
                        f"{folder / name}: damaged (its SHA-256 is not the "
                        "recorded one)."
                    )
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{folder}: damaged or missing ({error})."
        return None

    def _write_error(self, step: int, error: Exception) -> UserError:
        """One line for a checkpoint that could not be written."""
        text = str(error)
        # HDF5 hides the system's number inside its own text.
        full = getattr(error, "errno", None) == 28 or "errno = 28" in text
        cause = "the disk is full" if full else text.splitlines()[0]
        kept = self.steps()
        rest = f"step {kept[-1]} is kept" if kept else "there is none before it"
        return UserError(
            f"{self.directory}: the checkpoint of step {step} could not be "
            f"written: {cause}; {rest}. Make room and run the same command to "
            "continue."
        )


def _unsaved_variables(model):
    """Variables that Keras' weights file leaves out: random seeds.

    Their paths carry a counter of the whole process, so order names them.
    """
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]


def _unsaved_state(model):
    variables = _unsaved_variables(model)
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
