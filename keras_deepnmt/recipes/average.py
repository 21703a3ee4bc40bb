"""Another mean of a run's checkpoints, as a run folder of its own."""

import shutil
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.building import average_into
from keras_deepnmt.recipes.run_folder import RunFolder, write_json


def average(
    run_dir: str | Path, output_dir: str | Path, *, last: int
) -> dict[str, Any]:
    """Averages the last checkpoints of a run into a new run folder.

    It is the mean of the weights that were trained, also where the run kept a
    moving average of them.

    Args:
        run_dir: a run with checkpoints and a `run.json`.
        output_dir: the folder to write; it must not exist.
        last: how many checkpoints.

    Returns:
        What the new folder's `run.json` holds.

    Raises:
        UserError: if the run is not finished, has fewer checkpoints, or the
            output exists.

    Example:
    >>> average("runs/demo", "runs/demo-mean5", last=5)["averaged_steps"]
    [600, 700, 800, 900, 1000]
    """
    run, output = RunFolder(run_dir), RunFolder(output_dir)
    content = run.run()
    if output.directory.exists():
        raise UserError(
            f"{output.directory}: exists already. Give a new folder."
        )
    model, steps = average_into(run.recipe(), run, content, last)
    partial = RunFolder(output.directory.with_name(f".{output.directory.name}"))
    shutil.rmtree(partial.directory, ignore_errors=True)
    partial.directory.mkdir(parents=True)
    try:
        shutil.copytree(
            run.directory / "tokenizer", partial.directory / "tokenizer"
        )
        shutil.copyfile(run.recipe_file, partial.recipe_file)
        content |= {
            "weights_sha256": partial.write_model(model),
            "averaged_steps": steps,
            # Measured on other weights.
            "valid": {},
        }
        write_json(partial.run_file, content)
        partial.directory.replace(output.directory)
    finally:
        shutil.rmtree(partial.directory, ignore_errors=True)
    return content
