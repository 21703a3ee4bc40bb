"""Trains a recipe with several seeds and values, a process for each run."""

import itertools
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import yaml
from pydantic import BaseModel

from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.evaluation import Score
from keras_deepnmt.files import file_lock, lines_sha256, write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.own_code.loading import given_entries
from keras_deepnmt.processes import start_python
from keras_deepnmt.recipes.loading import load_recipe, recipe_content
from keras_deepnmt.runs.changes import find_changes
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import read_scores
from keras_deepnmt.runs.seed_groups import SeedGroup
from keras_deepnmt.runs.start import check_same_data, settle_recipe

RESULTS_FILE = "sweep.json"
# What scores depend on in `run.json`; a finished run may get other values.
_DEPENDS_ON = ("weights_sha256", "decoding", "evaluation")
_REMEDY = (
    "Delete it; the same `deepnmt sweep` then writes it again, and evaluates "
    "the finished runs for it."
)


class _Row(BaseModel, extra="allow"):
    """The values of a run in `sweep.json` that are read, and their types."""

    weights_sha256: str
    scores: dict[str, dict[str, float]]


class _Results(BaseModel, extra="allow"):
    """The form of `sweep.json`; its runs have the names of their folders."""

    runs: dict[str, _Row]


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep.

    Attributes:
        name: The name of its folder, from the values and the seed.
        point: The part of the name that is of the values; empty without any.
        values: The values of the grid, by dotted key.
        seed: The seed.
    """

    name: str
    point: str
    values: dict[str, Any]
    seed: int

    @property
    def overrides(self) -> dict[str, Any]:
        """What it changes in the recipe, by dotted key."""
        return {**self.values, "seed": self.seed}


@dataclass(frozen=True)
class SweepResult:
    """What came out of a run of a sweep.

    Attributes:
        run: The run.
        run_dir: Its folder.
        scores: The scores by split, `valid` and `test`, and by metric. Those of
            `valid` are of the final model, with which a recipe is chosen.
        failure: Why it has no scores, the last line that its process printed;
            `None` if it has.
    """

    run: SweepRun
    run_dir: Path
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True)
class SweepScores:
    """The scores of a sweep for `comparisons.seed_scores`.

    Attributes:
        scores: The scores by run folder, and by split and metric.
        recipes: The runs of each combination of values.
    """

    scores: dict[str, dict[str, Score]]
    recipes: list[SeedGroup]


def sweep_scores(results: Sequence[SweepResult]) -> SweepScores:
    """Groups the scores of the runs that have any by their values."""
    scores: dict[str, dict[str, Score]] = {}
    seeds: dict[str, dict[str, int]] = {}
    for result in results:
        if result.failure is None:
            run_dir, run = str(result.run_dir), result.run
            scores[run_dir] = {
                f"{split} {metric}": Score(value, "")
                for split, by_metric in result.scores.items()
                for metric, value in by_metric.items()
            }
            seeds.setdefault(run.point, {})[run_dir] = run.seed
    return SweepScores(
        scores,
        [SeedGroup(name or "the recipe", runs) for name, runs in seeds.items()],
    )


def sweep_runs(
    grid: Mapping[str, Sequence[Any]], seeds: Sequence[int]
) -> list[SweepRun]:
    """Lists the runs: each combination of the values, with each seed.

    `grid` has values by dotted key, such as
    `{"model.overrides.dropout": [0.1, 0.3]}`.
    """
    if "seed" in grid:
        raise UserError(
            "the grid cannot have `seed`: give the seeds by themselves."
        )
    for key, values in {**grid, "seeds": seeds}.items():
        texts = [_text(value) for value in values]
        if not texts or len(set(texts)) < len(texts):
            raise UserError(
                f"{key}: must have one value or several different ones. "
                f"Received: {', '.join(texts) or 'none'}"
            )
    labels = _labels(grid)
    points: dict[str, dict[str, Any]] = {}
    for values in itertools.product(*grid.values()):
        name = ",".join(
            f"{label}={_file_name(value)}"
            for label, value in zip(labels, values, strict=True)
        )
        point = dict(zip(grid, values, strict=True))
        if name in points:
            # Values such as those of two layers can differ in signs alone.
            name += f",{lines_sha256([_text(point)])[:8]}"
        points[name] = point
    return [
        SweepRun(f"{name},seed={seed}".lstrip(","), name, point, seed)
        for name, point in points.items()
        for seed in seeds
    ]


def sweep(
    recipe: str | Path,
    sweep_dir: str | Path,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    overrides: Mapping[str, Any] | None = None,
    prepared_dir: str | Path | None = None,
    data_dir: str | Path | None = None,
    processes: int = 1,
    say: Callable[[str], None] = print,
) -> list[SweepResult]:
    """Trains a recipe with each combination of values and each seed.

    Each run is `deepnmt train` and, if the recipe has a test set, `deepnmt
    evaluate`, as processes of their own. What is finished stays: the same call
    goes on where it was stopped, with more seeds or values too. A run that
    fails does not end the others. All recipes are checked before the first one
    trains. The data are prepared once for all runs that agree on them.

    Args:
        recipe: A name from `list_recipes()`, or the path of a YAML file.
        sweep_dir: The folder to write: one run folder for each run, the output
            of its processes beside it (`.log`), the prepared data, and
            `sweep.json` with all scores.
        grid: Values to try, by dotted key. Defaults to none: the seeds alone.
        seeds: The seeds.
        overrides: Values that replace the recipe's in all runs, by dotted key.
        prepared_dir: A prepared folder for all runs.
        data_dir: Folder with copies of public corpora.
        processes: Number of runs that train at the same time. With several of
            them, the devices of the environment variable CUDA_VISIBLE_DEVICES
            are divided among them.
        say: Function that prints a line.

    Returns:
        The results, in the order of `sweep_runs`.

    Raises:
        UserError: if the recipe is wrong with one of the values, or the folder
            has runs of another recipe.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, after all running processes
            have saved a checkpoint.

    Example:
    >>> results = sweep(
    ...     "my.yaml",
    ...     "sweeps/dropout",
    ...     grid={"model.overrides.dropout": [0.1, 0.3]},
    ... )
    >>> results[0].scores["test"]["bleu"]
    33.1
    """
    directory = Path(sweep_dir)
    runs = sweep_runs(grid or {}, seeds)
    made = _Sweep(recipe, directory, overrides or {}, prepared_dir, processes)
    unfinished = [run for run in runs if not made.is_finished(run)]
    made.check_models(unfinished)
    directory.mkdir(parents=True, exist_ok=True)
    if prepared_dir is None:
        made.prepare(unfinished, data_dir, say)
    return made.run(runs, say)


class _Sweep:
    """The processes of a sweep, and the file of their results."""

    def __init__(self, recipe, directory, overrides, prepared_dir, processes):
        self._recipe = recipe
        self._directory = directory
        self._overrides = overrides
        self._prepared_dir = prepared_dir
        self._processes = processes
        self._recipes = {}
        self._running = set()
        self._lock = threading.Lock()
        self._stopped = False
        # A damaged file is refused before anything trains.
        self._read()

    def is_finished(self, run):
        """Whether a run is trained; refuses a recipe that cannot be its own."""
        recipe = load_recipe(
            self._recipe,
            {**self._overrides, **run.overrides},
            self._prepared_dir,
        )
        folder = RunFolder(self._directory / run.name)
        settled = settle_recipe(
            recipe,
            folder,
            prepared_dir=self._prepared_dir,
            say=lambda line: None,
        )
        has_prepared = self._prepared_dir is not None
        folder.check_startable(settled, has_prepared=has_prepared)
        if has_prepared:
            check_same_data(folder, self._prepared_dir)
        self._recipes[run.name] = settled
        changes = find_changes(folder.started(), settled, has_prepared)
        return folder.is_finished() and folder.has_whole_model() and not changes

    def check_models(self, runs):
        """Refuses models that cannot be built, one for each combination.

        In other processes, since this one must not take an accelerator.
        """
        points = {_text(run.values): run for run in reversed(runs)}

        def check(run):
            with tempfile.TemporaryDirectory() as folder:
                words = ["recipe", "--show", self._recipe, *self._changes(run)]
                if self._prepared_dir is not None:
                    words += ["--prepared", self._prepared_dir]
                return self._process(words, Path(folder, "log"), None)

        failures = self._in_parallel(check, list(points.values())[::-1])
        mistakes = [failure for failure in failures if failure is not None]
        if mistakes:
            raise UserErrors(mistakes)

    def prepare(self, runs, data_dir, say):
        """Prepares the data of runs; those that agree share a folder."""
        folders = {self._data_of(run): run for run in runs}
        for folder, run in folders.items():
            say(f"Preparing {folder}")
            data = self._recipes[run.name].data
            prepare_corpus(data, folder, data_dir=data_dir, progress=False)

    def _data_of(self, run):
        """The folder of the data that a run is trained on."""
        if self._prepared_dir is not None:
            return Path(self._prepared_dir)
        content = _text(recipe_content(self._recipes[run.name])["data"])
        return self._directory / f"prepared-{lines_sha256([content])[:8]}"

    def run(self, runs, say):
        """Trains and scores all runs; returns their results in order."""
        shares = SimpleQueue()
        for devices in _shares_of_devices(self._processes):
            shares.put(devices)
        finished = itertools.count(1)

        def make(run):
            devices, start = shares.get(), time.monotonic()
            try:
                result = self._make(run, devices)
            finally:
                shares.put(devices)
            if not self._stopped:
                minutes = (time.monotonic() - start) / 60
                say(
                    f"[{next(finished)} of {len(runs)}] {run.name}: "
                    f"{_describe(result)} ({minutes:.1f} minutes)"
                )
            return result

        return self._in_parallel(make, runs)

    def _in_parallel(self, function, runs):
        """Applies a function to runs; ends all processes on an interrupt."""
        with ThreadPoolExecutor(self._processes) as pool:
            jobs = [pool.submit(function, run) for run in runs]
            try:
                return [job.result() for job in jobs]
            except KeyboardInterrupt as stop:
                self._stop()
                pool.shutdown(cancel_futures=True)
                raise type(stop)(
                    f"interrupted: {self._directory} keeps what is finished."
                ) from None

    def _make(self, run, devices):
        """Trains and scores a run, as far as that is left to do."""
        folder = RunFolder(self._directory / run.name)
        log = self._directory / f"{run.name}.log"
        if not self.is_finished(run):
            words = ["train", self._recipe, "--run-dir", folder.directory]
            words += ["--prepared", self._data_of(run)]
            failure = self._process([*words, *self._changes(run)], log, devices)
            if failure is not None:
                return SweepResult(run, folder.directory, {}, failure)
        summary = folder.read_summary()
        scores = {"valid": _values(summary.get("valid", {}))}
        data = self._recipes[run.name].data
        made = {key: summary.get(key) for key in _DEPENDS_ON}
        if data.corpora("test") or data.test_pairs:
            scores["test"] = self._known(run, made)
            if scores["test"] is None:
                words = ["evaluate", folder.directory]
                # Not that of an earlier version, whose name is another.
                if (prepared := self._data_of(run)).is_dir():
                    words += ["--prepared", prepared]
                failure = self._process(words, log, devices)
                if failure is not None:
                    return SweepResult(run, folder.directory, {}, failure)
                rows = read_scores(folder.scores_file)
                weights = made["weights_sha256"]
                if not rows or rows[-1].get("weights_sha256") != weights:
                    failure = f"{folder.scores_file}: cannot be written"
                    return SweepResult(run, folder.directory, {}, failure)
                scores["test"] = _values(rows[-1]["scores"])
        self._record(run, made, scores)
        return SweepResult(run, folder.directory, scores)

    def _changes(self, run):
        """The option `--set` with all that a run changes in the recipe."""
        changes = {**self._overrides, **run.overrides}
        return [
            "--set",
            *(f"{key}={_text(value)}" for key, value in changes.items()),
        ]

    def _process(self, words, log, devices):
        """Runs a command; returns the last line that it printed if it fails."""
        if own := given_entries():
            words = [*words, "--import", *own]
        environment = dict(os.environ)
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = devices
        with open(log, "ab") as output:
            with self._lock:
                if self._stopped:
                    return "stopped"
                # In a session of its own: Ctrl-C must reach it once, by us.
                process = start_python(
                    ["-m", "keras_deepnmt", *words],
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
                self._running.add(process)
            code = process.wait()
            with self._lock:
                self._running.discard(process)
        if code == 0:
            return None
        lines = log.read_text("utf-8", errors="replace").splitlines()
        said = next((line for line in reversed(lines) if line.strip()), "")
        said = said.partition(": error: ")[2] or said
        return said or f"exit code {code}; see {log}"

    def _stop(self):
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGTERM)

    def _known(self, run, made):
        """The test scores of this model and search that are recorded, if any.

        `made` are the entries of `run.json` that they depend on.
        """
        row = self._read().get(run.name, {})
        if any(row.get(key) != value for key, value in made.items()):
            return None
        return row["scores"].get("test")

    def _read(self):
        file = self._directory / RESULTS_FILE
        if not file.is_file():
            return {}
        return read_json(file, _Results, _REMEDY)["runs"]

    def _record(self, run, made, scores):
        file = self._directory / RESULTS_FILE
        with file_lock(file):
            rows = self._read()
            rows[run.name] = {
                "values": run.values,
                "seed": run.seed,
                **made,
                "scores": scores,
            }
            write_json(file, {"runs": rows})


def _labels(keys):
    """The shortest ends of dotted keys that tell them apart."""
    made = []
    for key in keys:
        parts = key.split(".")
        for length in range(1, len(parts) + 1):
            label = ".".join(parts[-length:])
            others = [k for k in keys if k != key]
            if not any(f".{k}".endswith(f".{label}") for k in others):
                break
        made.append(label)
    return made


def _text(value):
    """A value as one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=2**20, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("...").strip()


def _file_name(value):
    return re.sub(r"[^\w.+-]+", "_", _text(value)).strip("_")


def _values(scores):
    return {name: score["value"] for name, score in scores.items()}


def _describe(result):
    if result.failure is not None:
        return f"failed: {result.failure}"
    return ", ".join(
        f"{split} {name} {value:.2f}"
        for split, scores in result.scores.items()
        for name, value in scores.items()
    )


def _shares_of_devices(processes):
    """CUDA_VISIBLE_DEVICES of each process; `None` where it stays."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if len(devices) < max(processes, 2):
        return [None] * processes
    return [",".join(devices[place::processes]) for place in range(processes)]
