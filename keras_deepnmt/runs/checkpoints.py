"""Chooses one checkpoint of a run, and translates with its weights."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.build import load_checkpoint
from keras_deepnmt.runs.finish import describe_speed
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoints import checkpoint_fault
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.loading import (
    check_run_folder,
    with_run_options,
)

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


@dataclass(frozen=True)
class SavedCheckpoint:
    """One checkpoint of a run that need not be finished.

    Attributes:
        run: the run folder.
        recipe: the run's recipe.
        step: number of updates made until the checkpoint.
        folder: folder of the checkpoint.
    """

    run: RunFolder
    recipe: Recipe
    step: int
    folder: Path

    @classmethod
    def open(
        cls, run_dir: str | Path, checkpoint: str | int
    ) -> "SavedCheckpoint":
        """Opens the checkpoint that `choose_checkpoint` chooses.

        Raises:
            UserError: if this is no run folder, or there is no such
                checkpoint, or it is damaged.

        Example:
        >>> SavedCheckpoint.open("runs/demo", "latest").step
        1000
        """
        run = RunFolder(run_dir)
        check_run_folder(run.directory)
        return cls(run, run.recipe(), *choose_checkpoint(run, checkpoint))

    @property
    def weights_file(self) -> Path:
        return self.folder / WEIGHTS_FILE

    def load_translator(self, **options: Any) -> Translator:
        """Loads a translator with the weights that validation used.

        These are the moving average if the recipe keeps one, otherwise the
        trained weights. `options` are arguments of `Translator` in place of
        the decoding options of the recipe, as in `Translator.load`.

        Raises:
            UserError: if the tokenizers are not those of the run.
        """
        tokenizers = {
            side: self._read_tokenizer(side) for side in ("source", "target")
        }
        return Translator(
            self._load_model(tokenizers),
            tokenizers["source"],
            tokenizers["target"],
            **with_run_options(options, asdict(self.recipe.decoding)),
        )

    def summary(self) -> dict[str, Any]:
        """Returns what `run.json` says of a finished run's final model."""
        logs = [
            logs
            for _, logs in self.run.history()
            if logs.get("step", 0) <= self.step
        ]
        return {
            "name": self.recipe.name,
            "preset": self.recipe.model.preset,
            "steps": self.step,
            "averaged_steps": [self.step],
            "weights_sha256": file_sha256(self.weights_file),
            "decoding": asdict(self.recipe.decoding),
            "evaluation": asdict(self.recipe.evaluation),
            "training": describe_speed(logs),
            "seed": self.recipe.seed,
        }

    def _read_tokenizer(self, side):
        file = self.run.tokenizer_dir / f"{side}.model"
        tokenizer = Tokenizer(file)
        recorded = self.recipe.resolved.get("tokenizer", {}).get(side)
        if recorded not in (None, tokenizer.sha256):
            raise UserError(
                f"{file}: not the tokenizer that {self.run.recipe_file} was "
                "started with; its SHA-256 must be that in resolved.tokenizer."
            )
        return tokenizer

    def _load_model(self, tokenizers) -> keras.Model:
        sizes = {
            f"{side}_vocabulary_size": tokenizer.vocabulary_size
            for side, tokenizer in tokenizers.items()
        }
        return load_checkpoint(self.recipe, sizes, self.folder)
