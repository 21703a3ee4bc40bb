"""The folder of one training run: its files, its lock and its log."""

import contextlib
import csv
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_deepnmt.data.batches.batch_shapes import BATCH_SHAPES_VERSION
from keras_deepnmt.data.manifest import MANIFEST_FILE
from keras_deepnmt.data.shortlists import SHORTLIST_FILE
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.file_tables import check_files, file_table
from keras_deepnmt.files import (
    SCORES_FILE,
    WEIGHTS_FILE,
    StagedFolder,
    atomic_file,
    file_sha256,
    keep_modes,
    lock_folder,
    refuse_links,
    write_bytes,
    write_json,
)
from keras_deepnmt.own_code.code_file import CODE_DIR
from keras_deepnmt.recipes.checking import RecipeChecker
from keras_deepnmt.recipes.loading import (
    RECIPE_FILE,
    save_recipe,
    started_recipe,
)
from keras_deepnmt.recipes.schema import EvaluationRecipe, Recipe
from keras_deepnmt.runs.changes import check_changes, find_changes
from keras_deepnmt.runs.effects import check_effects, why_no_updates
from keras_deepnmt.trained import find_run_folder
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.translator.loading import (
    MODEL_DIR,
    RUN_FILE,
    TOKENIZER_DIR,
    is_preset_folder,
    read_summary,
    summary_file,
)
from keras_deepnmt.validation import checked_dataclass
from keras_deepnmt.weights_files import check_room
from keras_deepnmt.zoo.registry import check_preset_version

_CHECKPOINTS_DIR = "checkpoints"
_LOG_REMEDY = (
    "Copy it again, or delete it to go on without the validations that were "
    "made."
)
# In `resolved` of recipe.yaml while a finished model waits for the next one.
_MARK = "replaces_finished_model"


@checked_dataclass
class _Scoring:
    """The section of `run.json` about scores.

    Args:
        evaluation: how translations are scored.
    """

    evaluation: EvaluationRecipe


class RunFolder:
    """Names, reads and writes the files of one training run.

    Every file is written under a temporary name and then renamed, except
    `log.csv`, to which each validation adds a row, and those for TensorBoard.

    Attributes:
        training_began: whether this process has made an update.
        shortlist_file: the shortlists of the prepared data, if it has them.
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self.recipe_file = self.directory / RECIPE_FILE
        self.run_file = self.directory / RUN_FILE
        self.scores_file = self.directory / SCORES_FILE
        self.log_file = self.directory / "log.csv"
        self.divergence_file = self.directory / "divergence.json"
        self.epoch_counts_file = self.directory / "epoch_counts.json"
        self.validation_file = self.directory / "validation.json"
        self.tensorboard_dir = self.directory / "tensorboard"
        self.model_dir = self.directory / MODEL_DIR
        self.tokenizer_dir = self.directory / TOKENIZER_DIR
        self.shortlist_file = self.directory / SHORTLIST_FILE
        self.data_dir = self.directory / "data"
        self._replaced_data = self.directory / "data.replaced"
        self.translations_dir = self.directory / "translations"
        self.training_began = False

    @classmethod
    def find(cls, run: str | Path) -> "RunFolder":
        """Opens the folder of a run, or a trained model of the package."""
        return cls(find_run_folder(run))

    def checkpoints(
        self, keep: int | None = None, keep_best: int = 1
    ) -> CheckpointStore:
        """Opens the checkpoints; `keep` of them stay, or all if `None`.

        `keep_best` is the number of those of the best validations that stay.
        """
        folder = self.directory / _CHECKPOINTS_DIR
        return CheckpointStore(folder, keep, keep_best)

    def _records(self):
        """The files about the training and its scores."""
        return (
            self.log_file,
            self.divergence_file,
            self.epoch_counts_file,
            self.validation_file,
            self.scores_file,
        )

    def recipe(self) -> Recipe:
        """Reads the recipe that this run was started with; it must have one."""
        started = self.started()
        if started is None:
            raise UserError(
                f"{self.directory}: not a run folder (it holds no "
                "recipe.yaml). Train one with `deepnmt train`."
            )
        return started

    def started(self) -> Recipe | None:
        """Reads the recipe that this run was started with, if there is one."""
        return started_recipe(self.directory)

    def read_summary(self) -> dict[str, Any]:
        """Reads `run.json`, which is written when a run has finished."""
        return read_summary(self.directory)

    def scoring_of(self, summary: dict[str, Any]) -> EvaluationRecipe:
        """Returns how a summary asks for translations to be scored."""
        checker = RecipeChecker(str(summary_file(self.directory)))
        # With its section, so that errors name the whole key.
        section = {"evaluation": summary.get("evaluation", {})}
        scoring = checker.check(_Scoring, section)
        checker.raise_mistakes()
        return scoring.evaluation

    def is_finished(self) -> bool:
        """Whether the training that `recipe.yaml` describes has finished.

        While a finished run trains further, or again from the beginning, its
        model and its `run.json` stay; the recipe is then marked.
        """
        if not self.run_file.is_file():
            return False
        started = self.started()
        return started is None or _MARK not in started.resolved

    def has_whole_model(self) -> bool:
        """Whether the model and the tokenizers are those of `run.json`.

        They are not after a damage, or if a process was killed while it
        replaced them; training then makes them anew from its checkpoints.
        """
        try:
            summary = self.read_summary()
            hashes = {self.model_dir / WEIGHTS_FILE: summary["weights_sha256"]}
            for side, sha256 in summary["tokenizer"].items():
                hashes[self.tokenizer_dir / f"{side}.model"] = sha256
            check_files(self.directory, summary.get("files", {}), "", "")
            return all(file_sha256(file) == hashes[file] for file in hashes)
        except (OSError, UserError):
            return False

    def check_startable(
        self,
        recipe: Recipe,
        resume: bool = True,
        restart: bool = False,
        has_prepared: bool = False,
        allow_changes: bool = False,
    ) -> None:
        """Checks that `recipe` may be trained in the folder; writes nothing.

        With a prepared folder (`has_prepared`) the section `data` is not
        compared: `start.resolve_run` compares the folders. `resume` is whether
        checkpoints that are there may be continued, and `allow_changes` whether
        keys may change that the updates depend on.
        """
        if is_preset_folder(self.directory):
            raise UserError(
                f"{self.directory}: is a preset folder, which `deepnmt export` "
                "wrote. Train in another folder; `--from-preset "
                f"{self.directory}` starts with its weights."
            )
        for file in (self.run_file, self.recipe_file, *self._records()):
            if file.is_dir():
                raise UserError(
                    f"{file}: is a folder, where training writes a file. "
                    "Rename or delete it."
                )
        steps = self.checkpoints().steps()
        if not self.recipe_file.is_file():
            if steps:
                raise UserError(
                    f"{self.directory}: has checkpoints but no recipe.yaml, so "
                    "their recipe is unknown. Use another run folder."
                )
            return
        if restart:
            return
        self._check_versions()
        made = steps[-1] if steps else 0
        changes = find_changes(self.recipe(), recipe, has_prepared)
        reason = None
        if changes and made:
            reason = why_no_updates(recipe.training, self.history(), made)
        check_changes(changes, self.recipe_file, made, allow_changes, reason)
        if steps and not resume:
            raise UserError(
                f"{self.directory}: has checkpoints up to step {made}. "
                "Continue them, or use another run folder to start afresh."
            )
        if made > recipe.training.steps:
            raise UserError(
                f"{self.directory}: {made} updates are made already, "
                f"`training.steps` is {recipe.training.steps}. Give more "
                "updates, or use another run folder."
            )
        # From an older checkpoint, if this one is damaged, updates follow.
        if reason is not None and self.checkpoints().latest() == made:
            check_effects(
                self.directory,
                changes,
                recipe.training,
                self.checkpoints(),
                made,
                self.is_finished(),
                reason,
            )

    def _check_versions(self):
        recorded = self.recipe().resolved
        if not recorded:
            return
        check_preset_version(recorded.get("preset_version"), self.recipe_file)
        version = recorded.get("batch_shapes_version")
        if version != BATCH_SHAPES_VERSION:
            raise UserError(
                f"{self.recipe_file}: `resolved.batch_shapes_version` must be "
                f"{BATCH_SHAPES_VERSION}, with which this keras_deepnmt "
                f"chooses the batches. Received: {version}. Continue the run "
                "with the keras_deepnmt that started it, or begin again with "
                "`--restart`."
            )

    @contextmanager
    def lock(self, shared: bool = False) -> Iterator[None]:
        """Keeps other processes from training in this folder.

        The lock ends with the block, or with the process if it is killed. With
        `shared`, other processes may read checkpoints at the same time.
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

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Makes and locks the folder; a refused start leaves it as it was.

        A start is refused by an error in the recipe, the data or the files
        before the first update, see `training_began`: files that were not there
        before are then deleted, but not what teachers translated, which may
        have taken hours. After other errors and interrupts all files stay.
        Folders made here are deleted whenever they are still empty.
        """
        made = [
            folder
            for folder in (self.directory, *self.directory.parents)
            if not folder.exists()
        ]
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.lock():
            self._settle_data()  # after a process that was killed
            before = set(self.directory.iterdir())
            try:
                try:
                    yield
                finally:
                    self._settle_data()
            except (ValueError, OSError):
                if not self.training_began:
                    new = set(self.directory.iterdir()) - before
                    for path in new - {self.translations_dir}:
                        _delete(path)
                raise
            finally:
                for folder in (self.translations_dir, *made):
                    # One with content is not deleted.
                    with contextlib.suppress(OSError):
                        folder.rmdir()

    def replace_data(self, new: Path) -> None:
        """Puts data for a restart in the place of those in `data/`.

        The old ones are set aside until `begin` records the restart, and are
        put back if it does not come to that.
        """
        keep_modes(self.data_dir, new)
        self.data_dir.rename(self._replaced_data)
        new.rename(self.data_dir)

    def has_recorded_data(self) -> bool:
        """Whether `data/` holds the data that `recipe.yaml` records."""
        started, file = self.started(), self.data_dir / MANIFEST_FILE
        if started is None or not file.is_file():
            return False
        return started.resolved.get("manifest_sha256") == file_sha256(file)

    def _settle_data(self):
        """Deletes what `replace_data` has set aside, or puts it back."""
        if not self._replaced_data.exists():
            return
        try:
            has_begun = self.has_recorded_data()
        except UserError:  # recipe.yaml is damaged
            has_begun = False
        if has_begun:
            _delete(self._replaced_data)
        else:
            _delete(self.data_dir)
            self._replaced_data.rename(self.data_dir)

    def begin(
        self, recipe: Recipe, prepared_dir: Path, restart: bool = False
    ) -> None:
        """Records a start after all checks.

        A new run gets its `recipe.yaml`, and the tokenizers and shortlists of
        the prepared folder. In a run that is resumed changed values are
        written. With `restart` everything that belongs to the old training is
        deleted. A finished model stays until `write_result` ends the new
        training.
        """
        old = None if restart else self.started()
        if old is not None:
            budgets = [r.training.validation_budget for r in (old, recipe)]
            if budgets[0] != budgets[1]:
                # The sentences of the validations are chosen anew.
                _delete(self.validation_file)
            self.record(recipe)
            return
        if restart and self.recipe_file.is_file():
            # First: a process killed now leaves no run that looks finished.
            with contextlib.suppress(UserError):  # recipe.yaml is damaged
                self.record(self.recipe())
            checkpoints = self.directory / _CHECKPOINTS_DIR
            for old in (checkpoints, self.tensorboard_dir, *self._records()):
                _delete(old)
        if not self.run_file.is_file():
            self.copy_tokenizers(prepared_dir)
            self.copy_shortlist(prepared_dir)
        self.record(recipe)
        self._settle_data()

    def record(self, recipe: Recipe) -> None:
        """Writes `recipe.yaml`, marked if a finished model waits for the next.

        A file with the same content is left alone.
        """
        has_model = self.run_file.is_file()
        resolved = recipe.resolved | ({_MARK: True} if has_model else {})
        try:
            old = self.started()
        except UserError:  # damaged, and the run begins again
            old = None
        if old != recipe or old.resolved != resolved:
            save_recipe(recipe, self.recipe_file, resolved)

    def write_result(
        self, model: Any, summary: dict[str, Any], prepared_dir: Path
    ) -> None:
        """Writes the final model and its tokenizers, and last `run.json`.

        It makes the run a finished one, and gets the hashes of the files.
        """
        summary["weights_sha256"] = self.write_model(model)
        self.copy_tokenizers(prepared_dir)
        self.copy_shortlist(prepared_dir)
        summary["files"] = self.list_files()
        write_json(self.run_file, summary)
        recipe = self.recipe()
        if _MARK in recipe.resolved:
            resolved = {k: v for k, v in recipe.resolved.items() if k != _MARK}
            save_recipe(recipe, self.recipe_file, resolved)

    def copy_tokenizers(self, prepared_dir: Path) -> None:
        """Copies the tokenizers of a prepared folder, each atomically."""
        self.tokenizer_dir.mkdir(exist_ok=True)
        for side in ("source", "target"):
            name = f"{side}.model"
            content = (prepared_dir / "tokenizer" / name).read_bytes()
            write_bytes(self.tokenizer_dir / name, content)

    def copy_shortlist(self, folder: Path) -> None:
        """Copies the shortlists of a prepared folder or run folder, if any.

        Those of an earlier training do not stay.
        """
        file = folder / SHORTLIST_FILE
        if file.is_file():
            write_bytes(self.shortlist_file, file.read_bytes())
        else:
            _delete(self.shortlist_file)

    def history(self) -> list[tuple[int, dict[str, float]]]:
        """Reads the validations made so far: `(epoch, logs)`, oldest first."""
        _, rows = self._read_log()
        with refused_values(f"{self.log_file}: damaged. {_LOG_REMEDY} Found"):
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

    def describe_speed(self, until: int | None = None) -> dict[str, Any]:
        """Sums the times and tokens of the log over all starts of the run.

        Updates after `until` do not count. Target tokens per second are without
        validations, but with compiling.
        """
        logs = [
            row
            for _, row in self.history()
            if until is None or row.get("step", 0) <= until
        ]
        tokens = sum(row.get("tokens", 0.0) for row in logs)
        busy = sum(
            row.get("tokens", 0.0) / row["tokens_per_second"]
            for row in logs
            if row.get("tokens_per_second")
        )
        seconds, compiling = (
            sum(row.get(name, 0.0) for row in logs)
            for name in ("seconds", "compile_seconds")
        )
        return {
            "seconds": round(seconds, 1),
            "target_tokens": int(tokens),
            "target_tokens_per_second": round(tokens / busy, 1)
            if busy
            else None,
            "compile_seconds": round(compiling, 1),
        }

    def truncate_log(self, step: int) -> None:
        """Removes the log rows of updates after `step`, to be made again.

        A row that was written only in part, as on a full disk, is removed too.
        """
        names, rows = self._read_log()
        with refused_values(f"{self.log_file}: damaged. {_LOG_REMEDY} Found"):
            rows = [
                row
                for row in rows
                if _is_whole(row) and float(row["step"]) <= step
            ]
        if rows:
            self._write_log(names, rows)
        else:
            self.log_file.unlink(missing_ok=True)

    def append_log(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """Adds the row of a validation to the log.

        Values that earlier rows do not have, since the recipe has changed, get
        a column of their own.
        """
        names, rows = self._read_log()
        new = {"epoch": epoch, **logs}
        missing = sorted(new.keys() - set(names) - {"epoch"})
        if missing:
            names = ["epoch", *sorted({*names, *missing} - {"epoch"})]
            self._write_log(names, [*rows, new])
            return
        with open(self.log_file, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names).writerow(new)

    def _read_log(self):
        """Returns the names of the columns, and the rows as they are."""
        if not self.log_file.is_file():
            return [], []
        try:
            with open(self.log_file, encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                return reader.fieldnames or [], list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(
                f"{self.log_file}: damaged. {_LOG_REMEDY} Found: {error}"
            ) from error

    def _write_log(self, names, rows):
        with (
            atomic_file(self.log_file) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)

    def refuse_links(self) -> None:
        """Refuses links in the parts that go into copies of a run."""
        parts = (self.tokenizer_dir, self.shortlist_file, self.recipe_file)
        parts += (self.directory / CODE_DIR, self.scores_file)
        refuse_links(self.directory, [part.name for part in parts])

    def list_files(self) -> dict[str, dict[str, int | str]]:
        """Returns the table of the files that the finished model consists of.

        Those that further commands change are not in it, nor is the user's own
        code, whose hashes are in `run.json` as `code`.
        """
        parts = (MODEL_DIR, TOKENIZER_DIR, SHORTLIST_FILE)
        return file_table(self.directory, parts)

    def write_model(self, model) -> str:
        """Saves the final model as a Keras preset, in place of an earlier one.

        Returns the SHA-256 of its weights file.
        """
        with StagedFolder(self.model_dir, replace=True) as folder:
            check_room(folder, model.variables)
            model.save_to_preset(str(folder))
        return file_sha256(self.model_dir / WEIGHTS_FILE)


def _is_whole(row):
    """Whether a row of the log was written to its end."""
    # The values of the fields that are not there are None.
    return bool(row.get("step")) and None not in row.values()


def _delete(path):
    """Deletes a file or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
