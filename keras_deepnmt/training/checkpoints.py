"""Checkpoints that are whole or absent, and the mean of the last few."""

import errno
import os
import shutil
import warnings
from pathlib import Path

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE
from keras_deepnmt.training.averaging import write_mean
from keras_deepnmt.training.checkpoint_files import (
    SEAL_FILE,
    checkpoint_fault,
    read_checkpoint,
    write_checkpoint,
)


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
        seals = self.directory.glob(f"step-*/{SEAL_FILE}")
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
            UserError: if the disk is full or cannot be written, or what was
                written is not what it holds; the previous checkpoints are
                untouched then.
        """
        final = self.path(step)
        partial = self.directory / f".{final.name}.partial"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            write_checkpoint(partial, model, step)
            if final.exists():
                self.delete(step)
            os.replace(partial, final)
        except (OSError, RuntimeError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._write_error(step, error) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        if fault := checkpoint_fault(final):
            # Those before it are kept, whatever their number.
            raise UserError(f"{fault} Check the disk, and train again.")
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
        (self.path(step) / SEAL_FILE).unlink(missing_ok=True)
        shutil.rmtree(self.path(step))

    def latest(self) -> int | None:
        """Finds the newest undamaged checkpoint.

        A damaged one is passed over with a warning and the one before it taken.

        Returns:
            Its step, or `None` when there is none.
        """
        for step in reversed(self.steps()):
            fault = checkpoint_fault(self.path(step))
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
        elif fault := checkpoint_fault(self.path(step)):
            raise UserError(fault)
        read_checkpoint(self.path(step), model)
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
            if fault := checkpoint_fault(self.path(step)):
                raise UserError(fault)
        write_mean([self.path(step) / WEIGHTS_FILE for step in steps], output)
        return steps

    def _write_error(self, step: int, error: Exception) -> UserError:
        """One line for a checkpoint that could not be written."""
        text = str(error)
        # HDF5 hides the system's number inside its own text.
        full = (
            getattr(error, "errno", None) == errno.ENOSPC
            or "errno = 28" in text
        )
        cause = "the disk is full" if full else text.splitlines()[0]
        kept = self.steps()
        rest = f"step {kept[-1]} is kept" if kept else "there is none before it"
        return UserError(
            f"{self.directory}: the checkpoint of step {step} could not be "
            f"written: {cause}; {rest}. Make room and run the same command to "
            "continue."
        )
