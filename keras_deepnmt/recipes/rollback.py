"""Takes a run that diverged back to its last good checkpoint."""

import json
from pathlib import Path

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.run_folder import RunFolder, write_json
from keras_deepnmt.recipes.training_schema import DivergenceRecipe
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.divergence import (
    Diverged,
    DivergenceDetector,
    lower_rate,
)


class Rollbacks:
    """Remembers what a run's divergence asks for, over kills.

    A checkpoint made after a rollback holds the lowered rate; one it went back
    to, or before, does not: there the rate is lowered again at each restore.
    So a run killed at any moment goes on with the rate it had.

    Args:
        run: the run's folder.
        recipe: what is done about divergence.

    Attributes:
        detector: the callback that notices it.
    """

    def __init__(self, run: RunFolder, recipe: DivergenceRecipe):
        self.directory = run.directory
        self.recipe = recipe
        self.detector = DivergenceDetector(
            recipe.threshold, recipe.patience, recipe.decay
        )
        self._file: Path = run.divergence_file
        self._known = {"rollbacks": [], "states": {}}
        if self._file.is_file():
            self._known = json.loads(self._file.read_text(encoding="utf-8"))

    @property
    def rate_factor(self) -> float:
        """What all rollbacks made of the rate."""
        return self.recipe.rate_factor ** len(self._known["rollbacks"])

    def remember(self, step: int) -> None:
        """Keeps the detector's state; called before a checkpoint is written.

        Args:
            step: updates made.
        """
        if self.recipe.threshold is not None:
            states = self._known["states"]
            states[str(step)] = self.detector.state
            # As many as checkpoints could be needed, however many are kept.
            for old in sorted(states, key=int)[:-100]:
                del states[old]
            write_json(self._file, self._known)

    def take_up(self, model: keras.Model, step: int) -> None:
        """Gives rate and detector what they were; called after a restore.

        Args:
            model: the model restored.
            step: the checkpoint's.
        """
        self.detector.state = self._known["states"].get(str(step), [])
        for rollback in self._known["rollbacks"]:
            if step <= rollback["to"]:
                lower_rate(model, self.recipe.rate_factor)

    def roll_back(
        self, model: keras.Model, store: CheckpointStore, trouble: Diverged
    ) -> str:
        """Restores the last checkpoint before it went wrong, lowers the rate.

        Args:
            model: the model.
            store: its checkpoints; bad ones are deleted.
            trouble: what was noticed.

        Returns:
            What to tell a person.

        Raises:
            UserError: if there is no such checkpoint, or the run was rolled
                back too often.
        """
        made, most = len(self._known["rollbacks"]), self.recipe.most_rollbacks
        if made >= most:
            raise self._error(store, trouble, f"{made} rollbacks did not help")
        step = _restore_before(model, store, trouble.first_bad_step)
        if step is None:
            raise self._error(store, trouble, "there is no checkpoint before")
        self._known["rollbacks"].append(
            {"from": trouble.step, "to": step, "loss": str(trouble.loss)}
        )
        write_json(self._file, self._known)
        self.take_up(model, step)
        return (
            f"{trouble}; back to the checkpoint of update {step} with "
            f"{self.rate_factor:.3g} of the rate (rollback {made + 1} of "
            f"{most})."
        )

    def _error(self, store, trouble, why):
        kept = store.steps()
        rest = f"the checkpoint of step {kept[-1]} is kept" if kept else "stop"
        return UserError(
            f"{self.directory}: training diverged, {trouble}, and {why}; "
            f"{rest}. Lower `training.learning_rate.peak`, lengthen its "
            "warm-up or set `training.optimizer.global_clipnorm`, and train "
            "in another run folder."
        )


def _restore_before(model, store, first_bad_step):
    """Restores the newest checkpoint whose numbers are numbers."""
    for step in reversed(store.steps()):
        if step < first_bad_step:
            try:
                store.restore(model, step)
            except UserError:  # damaged
                continue
            if all(
                np.isfinite(keras.ops.convert_to_numpy(weight)).all()
                for weight in model.trainable_variables
            ):
                return step
        # Made from what went wrong; a later start must not find it.
        store.delete(step)
    return None
