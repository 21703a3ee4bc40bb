"""Trains one row of the table and scores it, in a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.rows.claim import claim_owner, claimed
from benchmarks.quality.rows.corpora import SMOKE_CORPUS, prepared_corpus
from benchmarks.quality.rows.row_list import CORPORA, TableRow, recipe_sha256
from benchmarks.quality.rows.sentence_counts import count_sentences
from benchmarks.shared.result_rows import REPOSITORY
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.scores import corpus_scores
from keras_deepnmt.files import lines_sha256, write_text
from keras_deepnmt.json_files import read_json
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.recipes.loading import flatten_recipe, save_recipe

# A tiny corpus and a few updates, to try the script.
SMOKE = {
    "data": {
        **SMOKE_CORPUS,
        "train": [SMOKE_CORPUS["train"]],
        "vocabulary_size": 300,
    },
    "model.overrides.num_encoder_layers": 2,
    "model.overrides.num_decoder_layers": 2,
    "training.steps": 4,
    "training.batch_tokens": 400,
    "training.max_shapes": 1,
    "training.validate_every": 2,
    "training.checkpoint_every": 1,
    "training.jit_compile": False,
}
CHANGES = {"full": {}, "smoke": SMOKE}
# Of the interval of BLEU.
_NUM_RESAMPLES = 1_000


class RowFolder:
    """The folder of one row: its claim, its run and its translations.

    Args:
        row: what is trained.
        folder: work folder of the table; rows, prepared corpora and text have
            subfolders.
        scale: `"full"`, or `"smoke"` for a tiny corpus and a few updates.

    Attributes:
        work_folder: the work folder.
        directory: the folder of this row, in the work folder.
        run: its run folder.
        preset_folder: the trained model as a preset, with a model card.
        recipe_sha256: hash of the recipe's values, or `None` without one. A
            recipe that changes gets new folders.
    """

    def __init__(self, row: TableRow, folder: Path, scale: str = "full"):
        self.row = row
        self.work_folder = folder
        self._changes = {**CORPORA[row.corpus].changes, **CHANGES[scale]}
        self.recipe_sha256 = recipe_sha256(row.recipe, self._changes)
        self.directory = row_directory(
            folder, row.recipe, row.seed, self.recipe_sha256
        )
        self.run = self.directory / "run"
        # Its name stands in the model card.
        self.preset_folder = self.directory / row.recipe
        self._claim = self.directory / "claim"

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the row in the CSV file, see `row_key`."""
        return self.row.recipe, str(self.recipe_sha256), str(self.row.seed)

    def state(self) -> str:
        """Describes in a few words how far the row is."""
        if self.recipe_sha256 is None:
            return "no recipe"
        owner = claim_owner(self._claim)
        if owner is not None:
            return f"in progress: {owner}"
        if (self.run / "run.json").is_file():
            return "trained"
        return "begun" if self.run.is_dir() else "missing"

    def claimed(self) -> AbstractContextManager[int | None]:
        """Claims the row for this process, see `claim.claimed`."""
        return claimed(self._claim)

    def recipe(self):
        """Loads the recipe, with the row's seed."""
        changes = {**self._changes, "seed": self.row.seed}
        return load_recipe(self.row.recipe, changes)

    def prepared(self) -> PreparedData:
        """Opens the prepared corpus, which is made if there is none."""
        data = prepared_corpus(self.recipe().data, self.work_folder)
        most = CORPORA[self.row.corpus].most_pairs
        pairs = data.manifest["splits"]["train"]["pairs"]
        if most is not None and pairs > most:
            raise UserError(
                f"{self.row.recipe}: the rows of {self.row.corpus} are of at "
                f"most {most:,} training pairs, the corpus has {pairs:,}."
            )
        return data

    def measure(self, run_command: Callable[[list[str]], None]) -> dict:
        """Trains, scores and exports the row, or makes the remaining steps.

        `run_command` runs `deepnmt` with a list of arguments. The caller has
        claimed the row.

        Returns:
            The columns of the row.
        """
        data = self.prepared()
        recipe_file = self.directory / "recipe.yaml"
        save_recipe(self.recipe(), recipe_file, {})
        prepared = ["--prepared", str(data.directory.absolute())]
        if not (self.run / "run.json").is_file():
            run_command(
                [
                    *("train", str(recipe_file), "--run-dir", str(self.run)),
                    *prepared,
                ]
            )
        scores = self._scores()
        translations = self.directory / "test.translations"
        if scores is None or not translations.is_file():
            run_command(
                [
                    *("evaluate", str(self.run), *prepared),
                    *("--output", str(translations)),
                ]
            )
            scores = self._scores()
        references = data.texts("test")[1]
        write_text(
            self.directory / "test.references",
            "".join(f"{line}\n" for line in references),
        )
        if not self.preset_folder.is_dir():
            run_command(
                [
                    *("export", str(self.run), str(self.preset_folder)),
                    *("--format", "preset"),
                ]
            )
        return self._columns(scores, data)

    def sentence_counts(self) -> np.ndarray:
        """Returns the counts that BLEU sums, once the row is measured."""
        evaluation = self._scores()["evaluation"]
        return count_sentences(
            *_read_texts(self.directory),
            evaluation["tokenize"],
            evaluation["lowercase"],
        )

    def _scores(self):
        """The scores of the final model on the test set, `None` if missing."""
        file = self.run / "scores.json"
        if not file.is_file():
            return None
        run = read_json(self.run / "run.json")
        for scores in reversed(read_json(file)["evaluations"]):
            if (
                scores["weights_sha256"] == run["weights_sha256"]
                and scores["test_set"]["name"] == "test"
                and "checkpoint" not in scores
                and "given" not in scores
            ):
                return scores
        return None

    def _columns(self, scores, data):
        run = read_json(self.run / "run.json")
        hypotheses, references = _read_texts(self.directory)
        evaluation = scores["evaluation"]
        bleu = corpus_scores(
            hypotheses,
            references,
            ["bleu"],
            evaluation["tokenize"],
            evaluation["lowercase"],
            num_resamples=_NUM_RESAMPLES,
        )["bleu"]
        if abs(bleu.value - scores["scores"]["bleu"]["value"]) > 1e-6:
            raise UserError(
                f"{self.directory}: test.translations has BLEU "
                f"{bleu.value:.2f}, scores.json of the run "
                f"{scores['scores']['bleu']['value']:.2f}. Delete "
                "test.translations and run the same command again."
            )
        return {
            **provenance_of_run(run),
            "date": scores["date"][:10],
            "corpus": self.row.corpus,
            "train_pairs": data.manifest["splits"]["train"]["pairs"],
            "preset": self.row.preset,
            "recipe": self.row.recipe,
            "recipe_sha256": self.recipe_sha256,
            "seed": self.row.seed,
            **_training(run),
            "test_set": scores["test_set"]["name"],
            "sentences": scores["test_set"]["sentences"],
            "num_beams": scores["decoding"]["num_beams"],
            "length_penalty": scores["decoding"]["length_penalty"],
            "length_offset": scores["decoding"]["length_offset"],
            "bleu": round(bleu.value, 2),
            "bleu_interval": round(bleu.interval, 2),
            "bleu_signature": bleu.signature,
            **_other_scores(scores["scores"]),
            "tokenize": evaluation["tokenize"],
            "lowercase": evaluation["lowercase"],
            "translations_sha256": lines_sha256(hypotheses)[:12],
            "plain": self.row.plain or "",
            "plain_recipe_sha256": self._plain_recipe_sha256() or "",
            "other_settings": self._other_settings(),
            "plain_translations_sha256": "",
            "bleu_difference": "",
            "p_value": "",
        }

    def _plain_recipe_sha256(self):
        """The hash of the plain model's recipe, `None` if there is none."""
        plain = self.row.plain_recipe
        return plain and recipe_sha256(plain, self._changes)

    def _other_settings(self):
        """The keys in which the recipe differs from the plain model's."""
        if self._plain_recipe_sha256() is None:
            return ""
        own, others = (
            flatten_recipe(load_recipe(name, self._changes))
            for name in (self.row.recipe, self.row.plain_recipe)
        )
        keys = [
            key
            for key in {**own, **others}
            if own.get(key) != others.get(key)
            and key not in ("name", "seed", "model.preset")
        ]
        return "; ".join(keys)


def row_directory(
    folder: Path, recipe: str, seed: int | str, sha256: str | None
) -> Path:
    """Returns the folder of a row in the work folder of the table."""
    return folder / "rows" / recipe / f"seed_{seed}_{sha256}"


def row_key(row: dict[str, str]) -> tuple[str, str, str]:
    """Returns what identifies a row of the CSV file."""
    return row["recipe"], row["recipe_sha256"], row["seed"]


def _read_texts(directory: Path) -> list[list[str]]:
    """Reads the translations and the references of a row's folder."""
    return [
        # Only "\n" ends a line: `splitlines` would also cut at U+2028.
        (directory / f"test.{name}")
        .read_text(encoding="utf-8")
        .split("\n")[:-1]
        for name in ("translations", "references")
    ]


def provenance_of_run(run):
    """Returns the first columns of a row, from `run.json`; the date is open."""
    device, versions = run["device"], run["versions"]
    commit = run["commit"]
    changed = "+" if commit.endswith("+") else ""
    is_hash = " " not in commit
    return {
        "date": None,
        "commit": commit[:10] + changed if is_hash else commit,
        "machine": f"{device['processor']}, {device['cores']} cores",
        "device": ", ".join(device["accelerators"]) or "CPU",
        "backend": device["backend"],
        "backend_version": versions.get(device["backend"], ""),
        "keras": versions["keras"],
        "sacrebleu": versions["sacrebleu"],
    }


def _training(run):
    training = run["training"]
    return {
        "parameters": run["parameters"],
        "updates": run["steps"],
        "final_model": run.get("final_model", ""),
        "averaged_checkpoints": len(run["averaged_steps"]),
        "target_tokens": training["target_tokens"],
        "training_minutes": round(training["seconds"] / 60, 1),
        "target_tokens_per_second": training["target_tokens_per_second"],
        "valid_bleu": round(run["valid"]["bleu"]["value"], 2)
        if run["valid"]
        else "",
    }


def _other_scores(scores):
    columns = {}
    for name in ("chrf", "ter"):
        score = scores.get(name)
        columns[name] = round(score["value"], 2) if score else ""
        columns[f"{name}_signature"] = score["signature"] if score else ""
    return columns


def deepnmt(
    arguments: list[str], claim: int | None = None, **environment: Any
) -> None:
    """Runs `deepnmt` in a process of its own, with this backend and claim.

    A process for each training has the whole memory and a compilation cache,
    and the same start as every other row. Raises a
    `subprocess.CalledProcessError` if it fails.
    """
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_deepnmt", *arguments, *quiet],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(REPOSITORY), *filter(None, [os.getenv("PYTHONPATH")])]
            ),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **environment,
        },
        stdout=subprocess.DEVNULL,
        pass_fds=[] if claim is None else [claim],
    )
    try:
        code = process.wait()
    except SystemExit:
        # The process saves a checkpoint. On Ctrl-C it has its signal already.
        process.terminate()
        process.wait()
        raise
    except KeyboardInterrupt:
        process.wait()
        raise
    if code:
        raise subprocess.CalledProcessError(code, f"deepnmt {arguments[0]}")
