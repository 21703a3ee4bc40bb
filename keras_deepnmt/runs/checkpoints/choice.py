"""Chooses one checkpoint of a run: the latest, the best, or that of a step."""

import logging
import math

from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoints import checkpoint_fault

LATEST, BEST = "latest", "best"
_logger = logging.getLogger(__name__)


def choose_step(run: RunFolder, checkpoint: str | int) -> int:
    """Returns the step of the checkpoint that `checkpoint` names.

    `checkpoint` is `"latest"`, `"best"` (see `best_step`) or the number of a
    step.

    Raises:
        UserError: if there is no such checkpoint, or it is damaged.

    Example:
    >>> choose_step(RunFolder("runs/demo"), "latest")
    1000
    """
    if checkpoint == BEST:
        return best_step(run)
    store = run.checkpoints()
    steps = store.steps()
    if checkpoint == LATEST:
        step = store.latest()
        if step is None:
            raise UserError(
                f"{store.directory}: holds no undamaged checkpoint. Train "
                "further."
            )
        return step
    if not str(checkpoint).isdecimal():
        raise UserError(
            "`checkpoint` must be latest, best or the number of a step. "
            f"Received: {checkpoint}"
        )
    step = int(checkpoint)
    if step not in steps:
        raise UserError(
            f"{store.directory}: holds no checkpoint of step {step}. "
            f"{_describe_steps(steps)}"
        )
    if fault := checkpoint_fault(store.path(step)):
        raise UserError(f"{fault} {_describe_steps(steps)}")
    return step


def best_step(run: RunFolder) -> int:
    """Returns the step whose checkpoint had the best validation.

    The value is the recipe's `training.early_stopping_metric`, as logged in
    `log.csv`; of equal values the last one counts. A checkpoint that was not
    validated or is damaged is left out.

    Raises:
        UserError: if no checkpoint was validated.
    """
    metric = run.recipe().training.early_stopping_metric
    sign = -1 if metric == "val_loss" else 1
    validated = {
        int(logs["step"]): sign * logs[metric]
        for _, logs in run.history()
        if "step" in logs and not math.isnan(logs.get(metric, math.nan))
    }
    store = run.checkpoints()
    steps = store.steps()
    kept = [
        step
        for step in steps
        if step in validated and checkpoint_fault(store.path(step)) is None
    ]
    if not kept:
        raise UserError(
            f"{store.directory}: holds no checkpoint with a {metric} in "
            f"{run.log_file.name}, so the best one is unknown. "
            f"{_describe_steps(steps)}"
        )
    best = max(kept, key=lambda step: (validated[step], step))
    highest = max(validated, key=lambda step: (validated[step], step))
    if validated[highest] > validated[best]:
        _logger.warning(
            "%s was best at step %d, whose checkpoint is no longer kept. Using "
            "step %d.",
            metric,
            highest,
            best,
        )
    return best


def _describe_steps(steps):
    if not steps:
        return "There is no checkpoint. Train further."
    return f"Take one of {', '.join(map(str, steps))}, or latest."
