"""Averages chosen checkpoints of a run into a run folder of their own."""

import shutil
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import StagedFolder, copy_folder, write_json
from keras_deepnmt.runs.checkpoints import average_checkpoints
from keras_deepnmt.runs.run_code import copy_code
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.translator.loading import is_preset_folder, read_run
from keras_deepnmt.weights_files import check_room


def average(
    run_dir: str | Path,
    output_dir: str | Path,
    *,
    last: int | None = None,
    best: int | None = None,
) -> dict[str, Any]:
    """Averages the last or the best checkpoints of a run into a new run folder.

    The trained weights are averaged, even if the run kept a moving average.

    Args:
        run_dir: a finished run with checkpoints.
        output_dir: the folder to write; it must not exist.
        last: number of checkpoints: the newest ones.
        best: instead of `last`, number of checkpoints: those of the best
            validations. A run keeps one of them, and with `training.
            final_model: average_best` as many as it averages.

    Returns:
        The content of the new folder's `run.json`.

    Raises:
        ValueError: unless one of `last` and `best` is given.
        UserError: if the run is not finished, damaged or trains further, has
            fewer checkpoints or is a preset folder, the output exists, a file
            to copy is a link, or the disk is full.

    Example:
    >>> average("runs/demo", "runs/demo-mean5", last=5)["averaged_steps"]
    [600, 700, 800, 900, 1000]
    """
    if (last is None) == (best is None):
        raise ValueError(
            "One of `last` and `best` must be given. "
            f"Received: last={last}, best={best}"
        )
    kind, number = ("last", last) if best is None else ("best", best)
    run = RunFolder.find(run_dir)
    if is_preset_folder(run.directory):
        raise UserError(
            f"{run.directory}: is a preset folder, which has no checkpoints. "
            "Give the run folder."
        )
    # With the check of the files that are copied.
    summary = read_run(run.directory).summary
    run.refuse_links()
    if Path(output_dir).exists():
        raise UserError(f"{output_dir}: exists already. Give a new folder.")
    with StagedFolder(output_dir) as folder:
        # No training may delete a checkpoint meanwhile.
        with run.lock(shared=True):
            _check_finished(run)
            model, steps = average_checkpoints(
                run.recipe(), run, summary, folder, **{kind: number}
            )
        check_room(folder, model.variables)
        output = RunFolder(folder)
        copy_folder(run.tokenizer_dir, output.tokenizer_dir)
        output.copy_shortlist(run.directory)
        copy_code(run.directory, folder)
        shutil.copyfile(run.recipe_file, output.recipe_file)
        summary |= {
            "weights_sha256": output.write_model(model),
            "final_model": f"average_{kind}",
            "averaged_steps": steps,
            # The run's scores belong to other weights.
            "valid": {},
        }
        summary["files"] = output.list_files()
        write_json(output.run_file, summary)
    return summary


def _check_finished(run):
    """Refuses a run whose `run.json` is that of an earlier training."""
    if not run.is_finished():
        raise UserError(
            f"{run.directory}: must be a finished run. Received: one that was "
            "started again and has not finished. Run the same `deepnmt train` "
            "again to finish it."
        )
