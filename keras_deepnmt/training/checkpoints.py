"""Checkpoints that are complete or absent, and the mean of the last few."""

import errno
import json
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.models.training_step.training_state import seed_variables
from keras_deepnmt.training.weight_average import write_mean

STATE_FILE = "state.npz"
SEAL_FILE = "checkpoint.json"
# Upper bound of the bytes that HDF5 and the archive add to each array.
_BYTES_PER_ARRAY = 4096


@dataclass(frozen=True)
class BestCheckpoint:
    """The checkpoint of the best validation of a run.

    Attributes:
        step: number of updates made.
        metric: name of the value that was compared, such as `"val_bleu"`.
        value: that value.
        path: folder of the checkpoint.
    """

    step: int
    metric: str
    value: float
    path: Path


class CheckpointStore:
    """Keeps the last checkpoints of a training run, and the best one.

    A checkpoint is a folder such as `step-00001500` with the weights and the
    optimizer (in Keras' format), the random states, which that file does not
    hold, and `checkpoint.json` with the step and the SHA-256 of the other
    files. It is written under another name and renamed when it is complete, so
    that a killed run, a full disk or Ctrl-C does not damage earlier ones.

    The checkpoint of the best validation is another folder of the same form,
    such as `best-00001200`. Training does not continue from it, and the others
    are kept, deleted and averaged as if it were not there.

    Args:
        directory: folder of the checkpoints; created if it is missing.
        keep: number of checkpoints to keep; older ones are deleted. Defaults
            to `None`, which keeps all.

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
        """Lists the steps that have a complete checkpoint, oldest first.

        The content of the files is not checked.
        """
        return _sealed_steps(self.directory, "step")

    def path(self, step: int) -> Path:
        """Returns the folder of one checkpoint, which need not exist."""
        return self.directory / f"step-{step:08d}"

    def save(self, model: keras.Model, step: int) -> Path:
        """Writes one checkpoint, deletes the oldest ones, returns its folder.

        Args:
            model: a built model; its optimizer is saved with it.
            step: number of updates made.

        Raises:
            UserError: if the disk is full or cannot be written, or the written
                files have another SHA-256 when read back; earlier checkpoints
                are then kept.
        """
        final = self.path(step)
        self._write(final, model, step)
        if self.keep is not None:
            for old in self.steps()[: -self.keep]:
                self.delete(old)
        self._delete_surpassed()
        return final

    def save_best(
        self, model: keras.Model, step: int, metric: str, value: float
    ) -> Path:
        """Writes the checkpoint of the best validation; returns its folder.

        Args:
            model: a built model; its optimizer is saved with it.
            step: number of updates made.
            metric: name of the value that is the best so far.
            value: that value.

        Raises:
            UserError: as `save` does.
        """
        final = self._best_path(step)
        details = {"metric": metric, "value": float(value)}
        self._write(final, model, step, details)
        self._delete_surpassed()
        return final

    def best(self) -> BestCheckpoint | None:
        """Returns the checkpoint of the best validation, or `None`.

        The content of its files is not checked.
        """
        steps = self._best_steps()
        if not steps:
            return None
        folder = self._best_path(steps[-1])
        seal = json.loads((folder / SEAL_FILE).read_text(encoding="utf-8"))
        return BestCheckpoint(steps[-1], seal["metric"], seal["value"], folder)

    def delete_best_after(self, step: int) -> None:
        """Deletes what validations after `step` left, which are made again."""
        for best in self._best_steps():
            if best > step:
                _delete(self._best_path(best))

    def _best_path(self, step: int) -> Path:
        return self.directory / f"best-{step:08d}"

    def _best_steps(self) -> list[int]:
        return _sealed_steps(self.directory, "best")

    def _delete_surpassed(self) -> None:
        """Deletes the best ones that none of the checkpoints needs.

        A run that goes on from one of them needs the best one up to there.
        """
        bests = self._best_steps()
        needed = {
            max((best for best in bests if best <= step), default=None)
            for step in self.steps()
        }
        for best in bests[:-1]:
            if best not in needed:
                _delete(self._best_path(best))

    def _write(
        self,
        final: Path,
        model: keras.Model,
        step: int,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes a folder completely, or raises and keeps what there is."""
        partial = self.directory / f".{final.name}.partial"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            write_checkpoint(partial, model, step, details)
            if final.exists():
                _delete(final)
            os.replace(partial, final)
        except (OSError, RuntimeError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._write_error(step, error) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        if fault := checkpoint_fault(final):
            # All earlier checkpoints are kept.
            raise UserError(f"{fault} Check the disk, and train again.")

    def delete(self, step: int) -> None:
        """Deletes one checkpoint."""
        _delete(self.path(step))

    def latest(self) -> int | None:
        """Returns the step of the newest undamaged checkpoint.

        A damaged one is skipped with a warning.

        Returns:
            The step, or `None` if there are no checkpoints.

        Raises:
            UserError: if all checkpoints are damaged.
        """
        faults = []
        for step in reversed(self.steps()):
            fault = checkpoint_fault(self.path(step))
            if fault is not None:
                faults.append(fault)
                continue
            for skipped in faults:
                warnings.warn(
                    f"{skipped} Taking the checkpoint before it.", stacklevel=2
                )
            return step
        if faults:
            raise UserError(
                f"{faults[0]} There is no other checkpoint to continue from. "
                "Begin again from update 0 with `deepnmt train --restart`, or "
                "use another run folder."
            )
        return None

    def restore(
        self, model: keras.Model, step: int | None = None
    ) -> int | None:
        """Restores weights, optimizer and random states of a model.

        Args:
            model: a built and compiled model of the same recipe.
            step: step of the checkpoint. Defaults to the newest undamaged one.

        Returns:
            The step of the checkpoint, or `None` if there is none.

        Raises:
            UserError: if the checkpoint is missing or damaged, if all are, or
                if it belongs to another model.
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

        The arrays are read one at a time and summed in float64; the optimizer
        is not written.

        Args:
            output: file to write; its name must end in `.weights.h5`.
            last: number of newest checkpoints to average. Defaults to all.
            steps: steps of the checkpoints to average, instead of `last`.

        Returns:
            The steps averaged.

        Raises:
            UserError: if there are too few checkpoints, or one is damaged.
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
        """Makes the error for a checkpoint that could not be written."""
        text = str(error)
        # HDF5 gives the system's error number only in its text.
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


def write_checkpoint(
    folder: Path,
    model: keras.Model,
    step: int,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Writes a checkpoint's files into an empty folder, `checkpoint.json` last.

    `details` are further entries of that file. Raises an `OSError`, or a
    `RuntimeError` of HDF5, if the disk is full or cannot be written.
    """
    _check_room(model, folder)
    model.save_weights(folder / WEIGHTS_FILE)
    np.savez(folder / STATE_FILE, *_unsaved_state(model))
    hashes = {
        name: file_sha256(folder / name) for name in (WEIGHTS_FILE, STATE_FILE)
    }
    seal = {"step": step, "sha256": hashes, **(details or {})}
    _write_text(folder / SEAL_FILE, json.dumps(seal, indent=2))


def read_checkpoint(folder: Path, model: keras.Model) -> None:
    """Restores weights, optimizer and random states from an undamaged folder.

    Raises a `UserError` if they belong to another model or optimizer.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    try:
        with warnings.catch_warnings():
            # Keras only warns if it does not load the optimizer.
            warnings.filterwarnings("error", "Skipping variable loading")
            model.load_weights(folder / WEIGHTS_FILE)
    except (ValueError, KeyError, UserWarning) as error:
        raise UserError(
            f"{folder / WEIGHTS_FILE}: belongs to another model or optimizer "
            f"({str(error).splitlines()[0]}) Use the recipe they were "
            "trained with."
        ) from error
    with np.load(folder / STATE_FILE) as arrays:
        values = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
    variables = seed_variables(model)
    if len(variables) != len(values):
        raise UserError(
            f"{folder / STATE_FILE}: holds {len(values)} random states, the "
            f"model has {len(variables)}. Use the recipe it was trained with."
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    if hasattr(model, "spread_seeds"):
        model.spread_seeds()


def checkpoint_fault(folder: Path) -> str | None:
    """Describes the damage of a checkpoint in a sentence.

    Returns `None` if every file has its recorded SHA-256.
    """
    try:
        seal = json.loads((folder / SEAL_FILE).read_text(encoding="utf-8"))
        for name, expected in seal["sha256"].items():
            if file_sha256(folder / name) != expected:
                return (
                    f"{folder / name}: damaged (its SHA-256 is not the "
                    "recorded one)."
                )
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{folder}: damaged or missing ({error})."
    return None


def _sealed_steps(directory, kind):
    seals = directory.glob(f"{kind}-*/{SEAL_FILE}")
    return sorted(int(seal.parent.name.split("-")[1]) for seal in seals)


def _delete(folder):
    # Without this file a partly deleted folder is not a checkpoint.
    (folder / SEAL_FILE).unlink(missing_ok=True)
    shutil.rmtree(folder)


def _check_room(model, folder):
    """Raises the system's own error if a checkpoint does not fit on the disk.

    HDF5 aborts the process if a write fails midway, so the space is reserved
    first: this detects a full disk, a quota and a limit on file sizes.
    """
    variables = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        variables += model.optimizer.variables
    needed = sum(
        math.prod(variable.shape) * 4 + _BYTES_PER_ARRAY
        for variable in variables
    )
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as room:
            os.posix_fallocate(room.fileno(), 0, needed)


def _unsaved_state(model):
    seeds = seed_variables(model)
    return [keras.ops.convert_to_numpy(seed) for seed in seeds]


def _write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
