"""Rolls a run that diverged back to its last good checkpoint."""

import math
import warnings
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
from pydantic import AfterValidator, BaseModel, Field

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.recipes.training_schema import DivergenceRecipe
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.divergence import (
    Diverged,
    DivergenceDetector,
    lower_rate,
)

_REMEDY = (
    "Delete it to go on as if training had never been rolled back: with the "
    "whole learning rate of the recipe."
)


class _Rollback(BaseModel, extra="allow"):
    """The value of a rollback that is read, and its rule."""

    rate_factor: float = Field(1.0, gt=0, lt=1)


def _check_state(state):
    if len(state) not in (0, 2):
        raise ValueError("have no values, or a mean and a number")
    return state


class _Record(BaseModel, extra="allow"):
    """The values of `divergence.json` that are read, and their rules."""

    rollbacks: list[_Rollback]
    # By the number of the update.
    states: dict[
        Annotated[str, Field(pattern=r"^\d+$")],
        Annotated[list[float], AfterValidator(_check_state)],
    ]


class Rollbacks:
    """Keeps the rollbacks of a run and the detector's states in a file.

    The factor on the learning rate follows from the rollbacks alone, also
    where a checkpoint from before them is restored. So a run that was killed
    at any time resumes with the rate it had.

    Attributes:
        detector: the callback that detects divergence.
    """

    def __init__(self, run: RunFolder, recipe: DivergenceRecipe):
        self.directory = run.directory
        self.recipe = recipe
        self.detector = DivergenceDetector(
            recipe.threshold,
            recipe.patience,
            recipe.decay,
            recipe.check_every,
        )
        self._file: Path = run.divergence_file
        self._record = {"rollbacks": [], "states": {}}
        if self._file.is_file():
            self._record = read_json(self._file, _Record, _REMEDY)

    @property
    def rate_factor(self) -> float:
        """The product of the factors that all rollbacks gave the rate."""
        return math.prod(map(self._factor_of, self._record["rollbacks"]))

    def _factor_of(self, rollback):
        # Earlier versions did not record it, and it could not change.
        return rollback.get("rate_factor", self.recipe.rate_factor)

    def save_state(self, step: int) -> None:
        """Writes the detector's state; call it before saving a checkpoint.

        Raises `Diverged` if training has diverged; no checkpoint must be saved.
        """
        self.detector.check()
        if self.recipe.threshold is not None:
            states = self._record["states"]
            states[str(step)] = self.detector.state
            # More than any number of checkpoints that a run keeps.
            for old in sorted(states, key=int)[:-100]:
                del states[old]
            write_json(self._file, self._record)

    def restore_state(self, model: keras.Model, step: int) -> None:
        """Restores the rate and the detector after checkpoint `step`."""
        self.detector.state = self._record["states"].get(str(step), [])
        optimizer = model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        # Not that of the checkpoint, which may be from before a rollback, or
        # divided by a schedule that the run no longer has.
        optimizer.rate_factor.assign(1.0)
        lower_rate(model, self.rate_factor)

    def roll_back(
        self, model: keras.Model, store: CheckpointStore, divergence: Diverged
    ) -> str:
        """Restores the last checkpoint before the divergence, lowers the rate.

        Later checkpoints are deleted. Returns a message for the user.
        """
        made = len(self._record["rollbacks"])
        most = self.recipe.most_rollbacks
        if made >= most:
            reason = f"{made} rollbacks did not help"
            raise self._error(store, divergence, reason)
        step = _restore_before(model, store, divergence.first_bad_step)
        if step is None:
            reason = "there is no checkpoint before"
            raise self._error(store, divergence, reason)
        self._record["rollbacks"].append(
            {
                "from": divergence.step,
                "to": step,
                "loss": str(divergence.loss),
                "rate_factor": self.recipe.rate_factor,
            }
        )
        write_json(self._file, self._record)
        self.restore_state(model, step)
        return (
            f"{divergence}; back to the checkpoint of update {step} with "
            f"{self.rate_factor:.3g} of the rate (rollback {made + 1} of "
            f"{most})."
        )

    def _error(self, store, divergence, reason):
        steps = store.steps()
        newest = (
            f"the checkpoint of step {steps[-1]} is kept"
            if steps
            else "there is no checkpoint"
        )
        return UserError(
            f"{self.directory}: training diverged, {divergence}, and {reason}; "
            f"{newest}. Lower `training.learning_rate.peak`, lengthen its "
            "warm-up or set `training.optimizer.global_clipnorm`, and train "
            "in another run folder."
        )


def _restore_before(model, store, first_bad_step):
    """Restores the newest checkpoint with finite weights; returns its step."""
    for step in reversed(store.steps()):
        if step < first_bad_step:
            try:
                store.restore(model, step)
            except UserError as error:  # damaged
                warnings.warn(
                    f"{error} Taking the checkpoint before it.", stacklevel=2
                )
                continue
            if all(
                np.isfinite(keras.ops.convert_to_numpy(weight)).all()
                for weight in model.trainable_variables
            ):
                return step
        # Made after the divergence; a later start must not resume from it.
        store.delete(step)
    return None
