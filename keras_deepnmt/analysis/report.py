"""The report of one or several runs: one HTML page with all results."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_deepnmt.analysis.analyses import analyze
from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.comparisons import (
    comparison_figures,
    score_figures,
    training_figures,
)
from keras_deepnmt.analysis.figure import Figure, Table
from keras_deepnmt.analysis.report_page import Section, report_page
from keras_deepnmt.analysis.sentences import sentence_figure
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.test_translations import (
    TestTranslations,
    translate_runs,
)
from keras_deepnmt.translator import Translator

_log = logging.getLogger(__name__)
_UNKNOWN = "not recorded"
_UNITS = (
    "Minutes include compilations and validations; tokens are real target "
    "tokens."
)


def report(
    run_dirs: Sequence[str | Path],
    *,
    num_resamples: int = 1_000,
    on_stage: Callable[[str], None] | None = None,
    on_loaded: Callable[[Translator, list[str]], None] | None = None,
    **sentences: Any,
) -> str:
    """Makes one HTML page about runs, which needs no other file.

    It shows how the runs were trained, their scores on the test set or another
    text with intervals, over seeds and in paired tests, BLEU by length,
    translations side by side, and all figures that the models' layers have: of
    one run of each recipe. The scores are added to each run's `scores.json`.

    Args:
        run_dirs: folders of finished runs. Other recipes are compared with
            that of the first one.
        num_resamples: samples of the bootstrap intervals and tests.
        on_stage: called with a sentence when a part begins.
        on_loaded: as for `runs.evaluate`.
        **sentences: arguments of `AnalyzedRun`, such as `num_sentences=200`,
            `source_file` and `prefixes`.

    Returns:
        The text of the page.

    Raises:
        ImportError: if matplotlib is not installed.
        UserError: if a run is not finished, or the runs have different test
            sets.

    Example:
    >>> page = report(["runs/plain", "runs/hybrid"])
    """
    # A missing package is reported before the translation, which may take long.
    import matplotlib.figure  # noqa: F401

    show = on_stage or (lambda stage: None)
    run_dirs = [str(run_dir) for run_dir in run_dirs]
    for run_dir in run_dirs:
        # A damaged record, too.
        RunFolder.find(run_dir).recipe()
        RunFolder.find(run_dir).history()
    where = _where(**sentences)
    show(f"Translating {where}")
    text = translate_runs(
        run_dirs,
        num_resamples=num_resamples,
        on_loaded=on_loaded,
        needs_bleu=True,
        **{
            option: sentences[option]
            for option in (
                *("split", "source_file", "target_file", "tag"),
                *("prepared_dir", "compiled"),
                *("prefixes", "constraints", "max_lengths"),
            )
            if option in sentences
        },
    )
    for name, reason in text.unrecorded.items():
        _log.warning("%s: the scores were not recorded: %s", name, reason)
    labels = _labels(run_dirs)
    text = _labelled(text, labels)
    language = RunFolder.find(run_dirs[0]).recipe().data.source_language
    training = {label: run_dir for run_dir, label in labels.items()}
    sections = [
        Section("Runs", [[_runs(labels, text.recipes)]]),
        Section(
            "Scores",
            [score_figures(text), *comparison_figures(text, num_resamples)],
        ),
        Section("Training", [training_figures(training)]),
        Section("Sentences", [[sentence_figure(text, language)]]),
    ]
    looked_at = [next(iter(group.runs.values())) for group in text.recipes]
    inside: dict[str, list[Figure]] = {}
    numbers = {}
    for label in looked_at:
        run = AnalyzedRun(training[label], **sentences)
        run.name = label
        numbers[label] = len(run.sources)
        for figure in analyze(
            run, on_start=lambda each, n=label: show(f"{n}: {each.summary}")
        ):
            if len(looked_at) > 1:
                figure = replace(figure, title=f"{figure.title}: {label}")
            inside.setdefault(figure.name, []).append(figure)
    groups = list(inside.values())
    if len(looked_at) == 1:
        groups = [[figure for group in groups for figure in group]]
    note = _inside_note(numbers, where)
    if len(looked_at) < len(run_dirs):
        note += f" Of one run of each recipe: {', '.join(looked_at)}."
    sections.append(Section("Inside the models", groups, note))
    return report_page(f"Report: {', '.join(labels.values())}", sections)


def _where(split="test", source_file=None, **others):
    """What is translated, and looked at."""
    if source_file is not None:
        return "the given text"
    return "the validation set" if split == "valid" else "the test set"


def _inside_note(numbers, where):
    """Says on how many sentences of a text each model was looked into."""
    if len(set(numbers.values())) == 1:
        return f"Sentences of {where}: {next(iter(numbers.values())):,}."
    # A model may have a shorter position range than the others.
    told = ", ".join(f"{name} {number:,}" for name, number in numbers.items())
    return f"Sentences of {where}: {told}."


def _labels(run_dirs):
    """Short names of runs: those of the folders, if they all differ."""
    names = [Path(run_dir).resolve().name for run_dir in run_dirs]
    if len(set(names)) < len(names):
        names = run_dirs
    return dict(zip(run_dirs, names, strict=True))


def _labelled(text: TestTranslations, labels: dict[str, str]):
    """Translations whose runs have their short names."""
    return replace(
        text,
        systems={labels[name]: v for name, v in text.systems.items()},
        scores={labels[name]: v for name, v in text.scores.items()},
        sentence_scores={
            labels[name]: v for name, v in text.sentence_scores.items()
        },
        recipes=[
            replace(group, seeds={labels[n]: s for n, s in group.seeds.items()})
            for group in text.recipes
        ],
    )


def _runs(labels, recipes):
    """How each run was trained; what all have in common is said once.

    Recipes of one name have the keys that differ beside it.
    """
    columns = [_training(run_dir) for run_dir in labels]
    of_run = {label: group.name for group in recipes for label in group.seeds}
    for label, values in zip(labels.values(), columns, strict=True):
        if values["recipe"] != _UNKNOWN:
            values["recipe"] = of_run.get(label, values["recipe"])
    names = list(columns[0])
    if len(columns) == 1:
        return Table(
            name="runs",
            title="How the run was trained",
            caption=_UNITS,
            header=["", next(iter(labels.values()))],
            rows=[[name, str(columns[0][name])] for name in names],
        )
    differ = [n for n in names if len({c[n] for c in columns}) > 1]
    common = "; ".join(
        f"{name}: {columns[0][name]}" for name in names if name not in differ
    )
    return Table(
        name="runs",
        title="How the runs were trained",
        caption=f"Equal in all runs: {common}. {_UNITS}",
        header=["run", *differ],
        rows=[
            [label, *(values[name] for name in differ)]
            for label, values in zip(labels.values(), columns, strict=True)
        ],
    )


def _training(run_dir):
    summary = RunFolder.find(run_dir).read_summary()
    training = summary.get("training", {})
    seconds = training.get("seconds")
    found = {
        "recipe": summary.get("name"),
        "preset": summary["preset"],
        "seed": summary.get("seed"),
        "parameters": _number(summary.get("parameters")),
        "updates": _number(summary.get("steps")),
        "minutes": None if seconds is None else f"{seconds / 60:.1f}",
        "target tokens": _number(training.get("target_tokens")),
        "device": _device(summary.get("device") or {}),
        "keras_deepnmt": summary.get("versions", {}).get("keras_deepnmt"),
    }
    return {
        name: _UNKNOWN if value is None else value
        for name, value in found.items()
    }


def _number(value):
    return None if value is None else f"{value:,}"


def _device(device):
    """The processor, or the accelerators, with their number."""
    if device.get("accelerators"):
        return ", ".join(map(str, device["accelerators"]))
    if "processor" not in device:
        return None
    return f"{device['processor']}, {device.get('cores', '?')} cores"
