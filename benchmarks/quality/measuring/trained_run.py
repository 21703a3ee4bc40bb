"""A run of a recipe with some of its keys changed, trained only once."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.quality.rows.corpora import prepared_corpus
from benchmarks.quality.rows.row_folder import deepnmt
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.json_files import read_json
from keras_deepnmt.recipes import load_recipe


class TrainedRun:
    """A run, which is trained unless its folder has a finished one.

    Args:
        recipe: name of a bundled recipe.
        directory: the run folder. A run that was broken off goes on.
        work_folder: folder of the prepared corpora, see `prepared_corpus`.
        changes: values that replace the recipe's, by dotted key.

    Attributes:
        directory: as above.
        data: the prepared corpus.
        summary: content of `run.json`.
    """

    data: PreparedData
    summary: dict[str, Any]

    def __init__(
        self,
        recipe: str,
        directory: Path,
        work_folder: Path,
        changes: Mapping[str, Any],
    ):
        self.directory = directory
        options = load_recipe(recipe, changes).data
        self.data = prepared_corpus(options, work_folder)
        self._prepared = ("--prepared", str(self.data.directory.absolute()))
        if not (directory / "run.json").is_file():
            deepnmt(
                [
                    *("train", recipe, "--run-dir", str(directory)),
                    *(*self._prepared, "--set"),
                    *(f"{key}={json.dumps(it)}" for key, it in changes.items()),
                ]
            )
        self.summary = read_json(directory / "run.json")

    def validations(self) -> list[dict[str, str]]:
        """Returns the rows of `log.csv`, one for each validation."""
        with open(
            self.directory / "log.csv", encoding="utf-8", newline=""
        ) as file:
            return list(csv.DictReader(file))

    def test_bleu(self) -> dict[str, Any]:
        """Scores the final model on the test set, unless that was done."""
        scores = self.directory / "scores.json"
        if not scores.is_file():
            deepnmt(["evaluate", str(self.directory), *self._prepared])
        return read_json(scores)["evaluations"][-1]["scores"]["bleu"]
