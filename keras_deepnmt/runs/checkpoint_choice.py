"""Chooses one checkpoint of a run: the latest, the best, or that of a step."""

from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoints import checkpoint_fault

LATEST, BEST = "latest", "best"


def choose_checkpoint(
    run: RunFolder, checkpoint: str | int
) -> tuple[int, Path]:
    """Returns the step and the folder of the checkpoint that is asked for.

    `checkpoint` is `"latest"`, the number of a step, or `"best"`: the one of
    the run's best validation by the recipe's `training.early_stopping_metric`.

    Raises:
        UserError: if there is no such checkpoint, or it is damaged.

    Example:
    >>> choose_checkpoint(RunFolder("runs/demo"), "latest")[0]
    1000
    """
    store = run.checkpoints()
    if checkpoint == BEST:
        best = store.best()
        if best is None:
            raise UserError(
                f"{store.directory}: holds no checkpoint of a best validation. "
                f"{_describe_steps(store.steps())}"
            )
        step, folder = best.step, best.path
    elif checkpoint == LATEST:
        step = store.latest()
        if step is None:
            raise UserError(
                f"{store.directory}: holds no undamaged checkpoint. Train "
                "further."
            )
        return step, store.path(step)
    elif not str(checkpoint).isdecimal():
        raise UserError(
            "`checkpoint` must be latest, best or the number of a step. "
            f"Received: {checkpoint}"
        )
    else:
        step = int(checkpoint)
        folder = store.path(step)
        if step not in store.steps():
            raise UserError(
                f"{store.directory}: holds no checkpoint of step {step}. "
                f"{_describe_steps(store.steps())}"
            )
    if fault := checkpoint_fault(folder):
        raise UserError(f"{fault} {_describe_steps(store.steps())}")
    return step, folder


def _describe_steps(steps):
    if not steps:
        return "There is no checkpoint. Train further."
    return f"Take one of {', '.join(map(str, steps))}, or latest."
