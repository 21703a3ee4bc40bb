"""The folder of one training run: what is in it and who may go on in it."""

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import (
    flatten_recipe,
    load_recipe,
    save_recipe,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.checkpoints import CheckpointStore

# May differ when a run goes on: no update depends on it.
FREE_KEYS = ("training.steps",)


class RunFolder:
    """Names the files of a run and writes them whole or not at all.

    Args:
        directory: the folder.

    Example:
    >>> RunFolder("runs/demo").log_file.name
    'log.csv'
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self.recipe_file = self.directory / "recipe.yaml"
        self.run_file = self.directory / "run.json"
        self.scores_file = self.directory / "scores.json"
        self.log_file = self.directory / "log.csv"
        self.divergence_file = self.directory / "divergence.json"
        self.validation_file = self.directory / "validation.json"
        self.tensorboard_dir = self.directory / "tensorboard"
        self.model_dir = self.directory / "model"
        self.data_dir = self.directory / "data"

    def checkpoints(self, keep: int | None = None) -> CheckpointStore:
        """Opens the checkpoints.

        Args:
            keep: how many of them stay; `None` keeps all.

        Returns:
            Their store.
        """
        return CheckpointStore(self.directory / "checkpoints", keep=keep)

    def recipe(self) -> Recipe:
        """Reads the recipe this folder was trained with.

        Returns:
            The recipe.

        Raises:
            UserError: if the folder holds none.
        """
        if not self.recipe_file.is_file():
            raise UserError(
                f"{self.directory}: not a run folder (it holds no "
                "recipe.yaml). Train one with `deepnmt train`."
            )
        return load_recipe(self.recipe_file)

    def run(self) -> dict[str, Any]:
        """Reads what a finished run says about itself.

        Returns:
            The content of `run.json`.

        Raises:
            UserError: if the run is not finished.
        """
        if not self.run_file.is_file():
            raise UserError(
                f"{self.directory}: this run is not finished (it holds no "
                "run.json). Run the same `deepnmt train` again to continue."
            )
        return json.loads(self.run_file.read_text(encoding="utf-8"))

    def claim(self, recipe: Recipe, resume: bool) -> None:
        """Makes the folder, or checks that a run may go on in it.

        Args:
            recipe: the recipe about to be trained.
            resume: whether going on from a checkpoint is wanted.

        Raises:
            UserError: if the folder belongs to another recipe (the first key
                that differs is named), is not a run folder, or has checkpoints
                and `resume` is false.
        """
        if self.recipe_file.is_file():
            self._check_same(recipe)
        elif self.directory.is_dir() and self.checkpoints().steps():
            raise UserError(
                f"{self.directory}: has checkpoints but no recipe.yaml, so "
                "nobody can tell what they are. Use another run folder."
            )
        steps = self.checkpoints().steps()
        if steps and not resume:
            raise UserError(
                f"{self.directory}: has checkpoints up to step {steps[-1]}. "
                "Continue them, or use another run folder to start afresh."
            )
        self.directory.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps every other process from training in this folder.

        Yields:
            Nothing; the folder is free again afterwards, also after a kill.

        Raises:
            UserError: if another process trains in it.
        """
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{self.directory}: another process is training in this run "
                "folder. Wait for it, stop it, or use another run folder."
            ) from error
        else:
            yield
        finally:
            os.close(folder)

    def _check_same(self, recipe):
        here, given = flatten_recipe(self.recipe()), flatten_recipe(recipe)
        for key in [*here, *given]:
            if here.get(key) != given.get(key) and key not in FREE_KEYS:
                raise UserError(
                    f"{self.recipe_file}: `{key}` is {here.get(key)!r} in this "
                    f"run and {given.get(key)!r} in the recipe given. Use "
                    "another run folder, or the recipe of this one."
                )

    def reopen(self, recipe: Recipe) -> None:
        """Takes up a new number of updates, so that a run can go on.

        Args:
            recipe: the recipe about to be trained, the folder's own but for
                the number of updates.

        Raises:
            UserError: if the run has made more updates than that already.
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
        """Copies the tokenizers that the ids of the data came from.

        Args:
            prepared_dir: the prepared folder.
        """
        final = self.directory / "tokenizer"
        final.mkdir(exist_ok=True)
        for side in ("source", "target"):
            partial = final / f".{side}.partial"
            shutil.copyfile(
                prepared_dir / "tokenizer" / f"{side}.model", partial
            )
            os.replace(partial, final / f"{side}.model")

    def history(self) -> list[tuple[int, dict[str, float]]]:
        """Reads the validations made so far.

        Returns:
            List of `(epoch, logs)`, oldest first.
        """
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

    def forget_after(self, step: int) -> None:
        """Drops log rows of updates that are going to be made again.

        Args:
            step: the update training goes on from.
        """
        if not self.log_file.is_file():
            return
        with open(self.log_file, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or []
            rows = [r for r in reader if float(r.get("step") or 0) <= step]
        if not rows:
            # A file without a header would never get one again.
            self.log_file.unlink()
            return
        partial = self.log_file.with_name(".log.csv.partial")
        with open(partial, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
        os.replace(partial, self.log_file)

    def write_model(self, model) -> str:
        """Saves the final model as a Keras preset.

        Args:
            model: a `keras_nlp.models.Backbone`.

        Returns:
            SHA-256 of its weights file.
        """
        partial = self.directory / ".model.partial"
        shutil.rmtree(partial, ignore_errors=True)
        model.save_to_preset(str(partial))
        shutil.rmtree(self.model_dir, ignore_errors=True)
        os.replace(partial, self.model_dir)
        weights = self.model_dir / "model.weights.h5"
        return hashlib.sha256(weights.read_bytes()).hexdigest()


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON file under another name and renames it.

    Args:
        file: where to.
        content: what to write.
    """
    partial = file.with_name(f".{file.name}.partial")
    with open(partial, "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, file)
