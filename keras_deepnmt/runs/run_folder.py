"""The folder of one training run: its files, its lock and its log."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_deepnmt.data.batches.batch_shapes import shapes_for_updates
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    WEIGHTS_FILE,
    StagedFolder,
    atomic_file,
    file_sha256,
    lock_folder,
    write_bytes,
)
from keras_deepnmt.recipes.loading import (
    flatten_recipe,
    load_recipe,
    save_recipe,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.translator.trained_run import (
    MODEL_DIR,
    RUN_FILE,
    TOKENIZER_DIR,
    read_summary,
)

# May differ when a run is resumed: no update depends on them.
CHANGEABLE_KEYS = ("training.steps",)


class RunFolder:
    """Names, reads and writes the files of one training run.

    Every file is written under a temporary name and then renamed.

    Args:
        directory: the folder.

    Example:
    >>> RunFolder("runs/demo").log_file.name
    'log.csv'
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self.recipe_file = self.directory / "recipe.yaml"
        self.run_file = self.directory / RUN_FILE
        self.scores_file = self.directory / "scores.json"
        self.log_file = self.directory / "log.csv"
        self.divergence_file = self.directory / "divergence.json"
        self.validation_file = self.directory / "validation.json"
        self.tensorboard_dir = self.directory / "tensorboard"
        self.model_dir = self.directory / MODEL_DIR
        self.tokenizer_dir = self.directory / TOKENIZER_DIR
        self.data_dir = self.directory / "data"

    def checkpoints(self, keep: int | None = None) -> CheckpointStore:
        """Opens the checkpoints; `keep` of them stay, or all if `None`."""
        return CheckpointStore(self.directory / "checkpoints", keep=keep)

    def recipe(self) -> Recipe:
        """Reads the recipe that this run was started with.

        Raises:
            UserError: if the folder has no `recipe.yaml`.
        """
        if not self.recipe_file.is_file():
            raise UserError(
                f"{self.directory}: not a run folder (it holds no "
                "recipe.yaml). Train one with `deepnmt train`."
            )
        return load_recipe(self.recipe_file)

    def read_summary(self) -> dict[str, Any]:
        """Reads `run.json`, which is written when a run has finished.

        Raises:
            UserError: if the run is not finished.
        """
        return read_summary(self.directory)

    def check_resumable(
        self, recipe: Recipe, resume: bool, has_prepared: bool = False
    ) -> None:
        """Makes the folder, or checks that `recipe` may be trained in it.

        With a prepared folder (`has_prepared`) the section `data` is not
        compared: `record_recipe` compares the folders.

        Raises:
            UserError: if the folder belongs to another recipe (the first key
                that differs is named), is not a run folder, or has checkpoints
                and `resume` is false.
        """
        if self.recipe_file.is_file():
            self._check_same(recipe, has_prepared)
        elif self.directory.is_dir() and self.checkpoints().steps():
            raise UserError(
                f"{self.directory}: has checkpoints but no recipe.yaml, so "
                "their recipe is unknown. Use another run folder."
            )
        steps = self.checkpoints().steps()
        if steps and not resume:
            raise UserError(
                f"{self.directory}: has checkpoints up to step {steps[-1]}. "
                "Continue them, or use another run folder to start afresh."
            )
        self.directory.mkdir(parents=True, exist_ok=True)

    def with_max_shapes(self, recipe: Recipe) -> Recipe:
        """Replaces `max_shapes: null` by the number that this run has.

        A new run gets the number that its updates are worth. It is recorded in
        `recipe.yaml`, so that the batches stay the same when the run is
        resumed or extended.
        """
        training = recipe.training
        if training.max_shapes is not None:
            return recipe
        number = None
        if self.recipe_file.is_file():
            number = self.recipe().training.max_shapes
        if number is None:
            number = shapes_for_updates(training.steps)
        return replace(recipe, training=replace(training, max_shapes=number))

    def _check_same(self, recipe, has_prepared):
        here, given = flatten_recipe(self.recipe()), flatten_recipe(recipe)
        for key in [*here, *given]:
            if has_prepared and key.startswith("data."):
                continue
            if here.get(key) != given.get(key) and key not in CHANGEABLE_KEYS:
                raise UserError(
                    f"{self.recipe_file}: `{key}` is {here.get(key)!r} in this "
                    f"run and {given.get(key)!r} in the recipe given. Use "
                    "another run folder, or the recipe of this one."
                )

    @contextmanager
    def lock(self, shared: bool = False) -> Iterator[None]:
        """Keeps other processes from training in this folder.

        The lock ends with the block, or with the process if it is killed.

        Args:
            shared: whether other processes may read checkpoints at the same
                time. Defaults to `False`.

        Raises:
            UserError: if another process trains in it or, unless `shared`,
                reads its checkpoints.
        """
        lock = lock_folder(self.directory, shared)
        if lock is None:
            reads = "" if shared else " or averages checkpoints"
            raise UserError(
                f"{self.directory}: another process is training{reads} in this "
                "run folder. Wait for it, stop it, or use another run folder."
            )
        try:
            yield
        finally:
            os.close(lock)

    def extend(self, recipe: Recipe) -> None:
        """Writes a changed `training.steps`, so that a run can train further.

        Raises:
            UserError: if the run has already made more updates than that.
        """
        old = self.recipe()
        if old.training.steps == recipe.training.steps:
            return
        made = max(self.checkpoints().steps(), default=0)
        if made > recipe.training.steps:
            raise UserError(
                f"{self.directory}: {made} updates are made already, "
                f"`training.steps` is {recipe.training.steps}. Give more "
                "updates, or use another run folder."
            )
        save_recipe(recipe, self.recipe_file, old.resolved)
        self.run_file.unlink(missing_ok=True)

    def copy_tokenizers(self, prepared_dir: Path) -> None:
        """Copies the tokenizers of a prepared folder."""
        self.tokenizer_dir.mkdir(exist_ok=True)
        for side in ("source", "target"):
            name = f"{side}.model"
            content = (prepared_dir / "tokenizer" / name).read_bytes()
            write_bytes(self.tokenizer_dir / name, content)

    def history(self) -> list[tuple[int, dict[str, float]]]:
        """Reads the validations made so far: `(epoch, logs)`, oldest first."""
        if not self.log_file.is_file():
            return []
        with open(self.log_file, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            (
                int(row["epoch"]),
                {
                    name: float(value)
                    for name, value in row.items()
                    if name != "epoch" and value not in ("", "NA", None)
                },
            )
            for row in rows
        ]

    def truncate_log(self, step: int) -> None:
        """Removes the log rows of updates after `step`, to be made again."""
        if not self.log_file.is_file():
            return
        with open(self.log_file, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or []
            rows = [r for r in reader if float(r.get("step") or 0) <= step]
        if not rows:
            # `CSVLogger` writes a header only into a new file.
            self.log_file.unlink()
            return
        with (
            atomic_file(self.log_file) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)

    def write_model(self, model) -> str:
        """Saves the final model as a Keras preset, in place of an earlier one.

        Returns:
            SHA-256 of its weights file.
        """
        with StagedFolder(self.model_dir, replace=True) as folder:
            model.save_to_preset(str(folder))
        return file_sha256(self.model_dir / WEIGHTS_FILE)
