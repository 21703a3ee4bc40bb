"""Checkpoints that are complete or absent, and the mean of several."""

import errno
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.files import (
    WEIGHTS_FILE,
    StagedFolder,
    delete_folder,
    remove_leftovers,
    write_json,
)
from keras_deepnmt.json_files import read_json
from keras_deepnmt.training.checkpoint_files import (
    SEAL_FILE,
    checkpoint_fault,
    read_checkpoint,
    write_checkpoint,
)
from keras_deepnmt.training.weight_average import write_mean


@dataclass(frozen=True)
class BestCheckpoint:
    """The checkpoint of the best validation of a run, or of one of the best.

    Attributes:
        step: number of updates made.
        metric: name of the value that was compared, such as `"val_bleu"`.
        value: that value.
        path: folder of the checkpoint.
        mode: `"max"` if a greater value is better, else `"min"`.
    """

    step: int
    metric: str
    value: float
    path: Path
    mode: str = "max"


class CheckpointStore:
    """Keeps the last checkpoints of a training run, and the best ones.

    A checkpoint is a folder such as `step-00001500` with the weights and the
    optimizer (in Keras' format), the random states, which Keras' file does not
    hold, and `checkpoint.json` with the step and the SHA-256 of the other
    files. It is written under another name and renamed when it is complete, so
    that a killed run, a full disk or Ctrl-C does not damage earlier ones.

    The checkpoint of the best validation is another folder of the same form,
    such as `best-00001200`. Training does not continue from it, and the others
    are kept and deleted as if it were not there. Besides the `keep_best` best
    ones of the whole run, the store keeps those that were the best up to each
    of the last checkpoints, since training may continue from there. If
    validations are not more frequent than checkpoints, it keeps at most
    `keep + keep_best` in all.

    A run that is interrupted between two checkpoints saves an extra one. It
    replaces no other one and is deleted after the next one is saved.

    Args:
        directory: folder of the checkpoints; created if it is missing.
        keep: number of checkpoints to keep, without an extra one; older ones
            are deleted. Defaults to `None`, which keeps all.
        keep_best: number of checkpoints of the best validations to keep.
            Defaults to 1.

    Raises:
        ValueError: if `keep` or `keep_best` is below one.

    Example:
    >>> store = keras_deepnmt.training.CheckpointStore("run/checkpoints", 2)
    >>> store.latest() is None
    True
    """

    def __init__(
        self,
        directory: str | Path,
        keep: int | None = None,
        keep_best: int = 1,
    ):
        for name, number in (("keep", keep), ("keep_best", keep_best)):
            if number is not None and number < 1:
                raise ValueError(
                    f"`{name}` must be at least 1. Received: {name}={number}"
                )
        self.directory = Path(directory)
        self.keep = keep
        self.keep_best = keep_best

    def steps(self) -> list[int]:
        """Lists the steps that have a complete checkpoint, oldest first.

        The content of the files is not checked. Folders with other names, such
        as `step-00001500.bak`, are named in a warning.
        """
        return [
            step
            for step, folder in _named_folders(self.directory, "step")
            if os.path.isfile(folder / SEAL_FILE)
        ]

    def path(self, step: int) -> Path:
        """Returns the folder of one checkpoint, which need not exist."""
        return self.directory / f"step-{step:08d}"

    def save(self, model: keras.Model, step: int, extra: bool = False) -> Path:
        """Writes one checkpoint, deletes the oldest ones, returns its folder.

        Args:
            model: a built model; its optimizer is saved with it.
            step: number of updates made.
            extra: whether it is an extra one, which the next `save` deletes.
                Defaults to `False`.

        Raises:
            UserError: if the disk is full or cannot be written, or the SHA-256
                of the files differs when they are read back; earlier
                checkpoints are then kept.
        """
        final = self.path(step)
        self._write(final, model, step, {"extra": True} if extra else None)
        extras = [one for one in self.steps() if self._is_extra(one)]
        old = [one for one in extras if one < step]
        if self.keep is not None:
            regular = [one for one in self.steps() if one not in extras]
            old += regular[: -self.keep]
        for one in old:
            self.delete(one)
        self._delete_surpassed()
        return final

    def save_best(
        self,
        model: keras.Model,
        step: int,
        metric: str,
        value: float,
        mode: str | None = None,
    ) -> Path | None:
        """Writes the checkpoint of one of the best validations so far.

        Args:
            model: a built model; its optimizer is saved with it.
            step: number of updates made.
            metric: name of the value by which validations are compared.
            value: that value. Of equal values the first is the best.
            mode: `"max"` or `"min"`. Defaults to `"max"` for a BLEU score and
                `"min"` otherwise.

        Returns:
            The folder of the checkpoint; `None`, and nothing is written, if
            `keep_best` earlier ones are as good, or the value is NaN.

        Raises:
            UserError: as `save` does.
        """
        mode = mode or mode_of(metric)
        final = self.directory / f"best-{step:08d}"
        new = BestCheckpoint(step, metric, float(value), final, mode)
        bests = [best for best in self.bests() if best.step < step]
        ranked = _best_first([*bests, new])
        if math.isnan(value) or ranked.index(new) >= self.keep_best:
            return None
        details = {"metric": metric, "value": new.value, "mode": mode}
        self._write(final, model, step, details)
        self._delete_surpassed()
        return final

    def best(self) -> BestCheckpoint | None:
        """Returns the checkpoint of the best validation, or `None`.

        The content of its files is not checked.
        """
        return next(iter(self.bests()), None)

    def bests(self) -> list[BestCheckpoint]:
        """Returns the checkpoints of the best validations, best first.

        There may be more than `keep_best`. One whose `checkpoint.json` is
        damaged is left out with a warning; other files are not checked.
        """
        found = []
        for step, folder in _named_folders(self.directory, "best"):
            try:
                found.append(_read_best(step, folder))
            except (OSError, UserError) as error:
                warnings.warn(f"{error} It is left out.", stacklevel=2)
        return _best_first(found)

    def compare_by(self, metric: str, values: Mapping[int, float]) -> None:
        """Compares the best ones by another value of their validations.

        Those without a value are deleted.

        Args:
            metric: name of the value.
            values: its value in the validation after each step.
        """
        for best in self.bests():
            value = values.get(best.step, math.nan)
            if best.metric == metric:
                continue
            if math.isnan(value):
                delete_folder(best.path)
                continue
            seal = _read_seal(best.path)
            new = {"metric": metric, "value": value, "mode": mode_of(metric)}
            write_json(best.path / SEAL_FILE, {**seal, **new})

    def delete_unfinished(self) -> None:
        """Deletes what killed processes left half written or half deleted."""
        remove_leftovers(self.directory)

    def delete_best_after(self, step: int) -> None:
        """Deletes the best ones after `step`: they will be validated again."""
        for best in self.bests():
            if best.step > step:
                delete_folder(best.path)

    def _is_extra(self, step: int) -> bool:
        try:
            return _read_seal(self.path(step)).get("extra", False)
        except (OSError, UserError):  # damaged
            return False

    def _delete_surpassed(self) -> None:
        """Deletes the best ones that none of the checkpoints needs.

        A run that continues from one of them needs the best ones up to there.
        """
        bests = self.bests()
        needed = set(bests[: self.keep_best])
        for step in self.steps():
            until = [best for best in bests if best.step <= step]
            needed.update(until[: self.keep_best])
        for best in bests:
            if best not in needed:
                delete_folder(best.path)

    def _write(
        self,
        final: Path,
        model: keras.Model,
        step: int,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes a folder completely, or raises and keeps the earlier ones."""
        with StagedFolder(final, replace=True) as folder:
            try:
                write_checkpoint(folder, model, step, details)
            except (OSError, RuntimeError) as error:
                raise self._write_error(step, error) from error
        if fault := checkpoint_fault(final):
            # All earlier checkpoints are kept.
            raise UserError(f"{fault} Check the disk, and train again.")

    def delete(self, step: int) -> None:
        """Deletes one checkpoint."""
        delete_folder(self.path(step))

    def latest(self) -> int | None:
        """Returns the step of the newest undamaged checkpoint.

        A damaged or unreadable one is skipped with a warning.

        Returns:
            The step, or `None` if there are no checkpoints.

        Raises:
            UserError: if all checkpoints are damaged.
        """
        faults = []
        for step, folder in reversed(_named_folders(self.directory, "step")):
            fault = checkpoint_fault(folder)
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
        best: int | None = None,
    ) -> list[int]:
        """Writes the mean of several checkpoints' weights to one file.

        The arrays are read one at a time and summed in float64; the optimizer
        is not written.

        Args:
            output: file to write; its name must end in `.weights.h5`.
            last: number of newest checkpoints to average. Defaults to all.
            steps: steps of the checkpoints to average, instead of `last`.
            best: number of checkpoints of the best validations to average,
                instead of `last`.

        Returns:
            The steps averaged, in ascending order unless `steps` is given.

        Raises:
            UserError: if there are too few checkpoints, or one is damaged.
            ValueError: if a step is given twice.
        """
        if best is not None:
            chosen = {b.step: b.path for b in self.bests()[:best]}
            self._check_number(len(chosen), best, " of best validations")
        elif steps is not None:
            chosen = {step: self.path(step) for step in steps}
            if len(chosen) < len(steps):
                raise ValueError(
                    "`steps` must be different checkpoints. "
                    f"Received: steps={steps}"
                )
        else:
            present = _named_folders(self.directory, "step")
            self._check_number(len(present), last or 1)
            chosen = dict(present[-(last or 0) :])
        if steps is None:
            chosen = dict(sorted(chosen.items()))
        for folder in chosen.values():
            if fault := checkpoint_fault(folder):
                raise UserError(
                    f"{fault} Delete {folder}, so that another checkpoint "
                    "takes its place, or average fewer, and run again."
                )
        write_mean([path / WEIGHTS_FILE for path in chosen.values()], output)
        return list(chosen)

    def _check_number(self, present, needed, kind=""):
        if present < needed:
            raise UserError(
                f"{self.directory}: has {present} checkpoints{kind}, but "
                f"{needed} are to be averaged. Train further or average fewer."
            )

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


def mode_of(metric: str) -> str:
    """Returns `"max"` for a BLEU score and `"min"` for any other value."""
    return "max" if "bleu" in metric else "min"


def _best_first(bests):
    return sorted(
        bests,
        key=lambda best: (
            -best.value if best.mode == "max" else best.value,
            best.step,
        ),
    )


def _named_folders(directory, kind):
    """Lists the steps and folders named as checkpoints are, oldest first.

    A copy of one under another name, such as `step-00001000.bak`, is named in a
    warning. Other folders are the user's own.
    """
    found = []
    for name in os.listdir(directory) if directory.is_dir() else ():
        number = name.removeprefix(f"{kind}-")
        if number.isdecimal() and name == f"{kind}-{int(number):08d}":
            found.append((int(number), directory / name))
        elif name != number and (directory / name / SEAL_FILE).is_file():
            warnings.warn(
                f"{directory / name}: is not used, since its name is not that "
                f"of a checkpoint, such as {kind}-00001000.",
                stacklevel=3,
            )
    return sorted(found)


def _read_best(step, folder):
    """Describes one of the best checkpoints by its `checkpoint.json`."""
    seal = _read_seal(folder)
    with refused_values(f"{folder / SEAL_FILE}: damaged"):
        metric, value, mode = seal["metric"], seal["value"], seal["mode"]
        return BestCheckpoint(step, str(metric), float(value), folder, mode)


def _read_seal(folder):
    seal = read_json(folder / SEAL_FILE)
    if not isinstance(seal, dict):
        raise UserError(f"{folder / SEAL_FILE}: damaged, not an object.")
    return seal
