"""Refuses changes to the recipe of a run that would have no effect."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.training_schema import TrainingRecipe
from keras_deepnmt.runs.changes import KeyChange
from keras_deepnmt.training.callbacks import EarlyStopping
from keras_deepnmt.training.checkpoints import CheckpointStore

_MEAN_KEYS = ("training.average_checkpoints", "training.final_model")


def why_no_updates(
    training: TrainingRecipe,
    history: Sequence[tuple[int, dict[str, float]]],
    made: int,
) -> str | None:
    """Says why no update follows, and what to change; `None` if some do.

    `history` has `(epoch, logs)` of the validations so far, and `made` is the
    number of updates made. What only the model can tell, as the learning rate
    of the schedule `plateau`, is not considered.
    """
    if made >= training.steps:
        return f"all {made:,} updates are made. Give more `training.steps`"
    if training.early_stopping_patience is None:
        return None
    stopping = EarlyStopping(
        training.early_stopping_metric,
        training.early_stopping_patience,
        history=validations_until(history, made),
    )
    stopping.set_model(SimpleNamespace(stop_training=False))
    stopping.on_train_begin()
    return describe_stop(made, stopping.reason)


def describe_stop(made: int, reason: str | None) -> str | None:
    """Returns the reason of a callback for the end of a run, as a clause."""
    if reason is None:
        return None
    return f"the run has stopped at update {made:,}: {reason[:-1]}"


def validations_until(
    history: Sequence[tuple[int, dict[str, float]]], step: int
) -> list[tuple[int, dict[str, float]]]:
    """Returns the validations after updates up to `step`."""
    return [
        (epoch, logs) for epoch, logs in history if logs.get("step", 0) <= step
    ]


def check_effects(
    directory: Path,
    changes: Sequence[KeyChange],
    training: TrainingRecipe,
    store: CheckpointStore,
    made: int,
    is_finished: bool,
    reason: str | None,
) -> None:
    """Refuses changed keys of a run without further updates.

    They are refused if updates alone depend on them, or if the run has too few
    checkpoints for the mean that is asked for. `made` is the number of updates
    made. `reason` is what `why_no_updates` returned, or another reason; with
    `None` nothing is refused.
    """
    if reason is None or not changes:
        return
    if not is_finished and made >= training.steps:
        # Perhaps they end the run here, before its last checkpoints.
        changes = [c for c in changes if c.key != "training.steps"]
    idle = [
        f"`{c.key}`" for c in changes if not c.is_final and not c.is_derived
    ]
    if idle:
        raise UserError(
            f"{directory}: {' and '.join(idle)} would have no effect, since "
            f"{reason}, or leave the change out."
        )
    if any(c.key in _MEAN_KEYS for c in changes):
        _check_number_of_checkpoints(training, store)


def _check_number_of_checkpoints(training: Any, store: CheckpointStore):
    number = len(store.steps())
    if training.final_model == "average_best":
        number = len(store.bests())
    if training.final_model != "best" and (
        number < training.average_checkpoints
    ):
        raise UserError(
            f"{store.directory}: `training.average_checkpoints` is "
            f"{training.average_checkpoints}, but the run has kept {number} "
            "checkpoints for `training.final_model: "
            f"{training.final_model}`. Average fewer, or give more "
            "`training.steps`."
        )
