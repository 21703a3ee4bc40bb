"""Figures that compare runs: curves of training, scores, BLEU by length."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_deepnmt.analysis.figure import Bars, Figure, Lines, Table
from keras_deepnmt.evaluation import bleu_by_source_length
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.test_translations import TestTranslations

_CURVES = {
    "loss": ("training_loss", "Training loss", "loss (nats per token)"),
    "val_loss": ("validation_loss", "Validation loss", "loss (nats per token)"),
    "val_bleu": ("validation_bleu", "Validation BLEU", "BLEU"),
}


def training_figures(
    run_dirs: Sequence[str | Path] | Mapping[str, str | Path],
) -> list[Figure]:
    """Curves of training of one or several runs, and updates to a loss.

    Args:
        run_dirs: folders of runs, finished or not; or a dict of them by the
            names that are shown.

    Returns:
        Training loss, validation loss and BLEU over updates, as far as they
        were logged; with several runs a table of the updates after which each
        reaches the best validation loss that all of them reach.

    Raises:
        UserError: if a log is damaged.
    """
    if not isinstance(run_dirs, Mapping):
        run_dirs = {str(run_dir): run_dir for run_dir in run_dirs}
    logs = {
        name: [row for _, row in RunFolder(run_dir).history()]
        for name, run_dir in run_dirs.items()
    }
    figures: list[Figure] = []
    for column, (name, title, label) in _CURVES.items():
        series = {}
        for run_name, rows in logs.items():
            rows = [row for row in rows if column in row and "step" in row]
            if rows:
                series[run_name] = (
                    [row["step"] for row in rows],
                    [row[column] for row in rows],
                )
        if series:
            figures.append(
                Lines(
                    name=name,
                    title=title,
                    caption=_caption(column),
                    series=series,
                    x_label="updates",
                    y_label=label,
                )
            )
    table = _updates_to_loss(logs)
    return [*figures, table] if table else figures


def _caption(column):
    if column == "loss":
        return "Mean since the last validation, with label smoothing if any."
    if column == "val_bleu":
        return "Of the model in training, with the search of validations."
    return "On the validation set, without dropout."


def _updates_to_loss(logs):
    """The first validation of each run whose loss all runs reach."""
    curves = {
        name: [(row["step"], row["val_loss"]) for row in rows]
        for name, rows in (
            (name, [row for row in rows if "val_loss" in row])
            for name, rows in logs.items()
        )
        if rows
    }
    if len(curves) < 2:
        return None
    loss = max(min(value for _, value in curve) for curve in curves.values())
    return Table(
        name="updates_to_loss",
        title=f"Updates to a validation loss of {loss:.3f}",
        caption="The best validation loss that all runs reach, and the first "
        "validation of each run that is as good.",
        header=["run", "updates", "best validation loss"],
        rows=[
            [
                name,
                f"{next(step for step, v in curve if v <= loss):,.0f}",
                f"{min(value for _, value in curve):.3f}",
            ]
            for name, curve in curves.items()
        ],
    )


def score_figures(text: TestTranslations) -> list[Figure]:
    """Makes a table of scores, and BLEU by the length of the source.

    Args:
        text: translations of one or several systems, from
            `runs.test_translations`.

    Returns:
        The table, with intervals and signatures, and BLEU of groups of
        sentences if the sources are known.
    """
    figures: list[Figure] = [
        Table(
            name="scores",
            title="Scores",
            caption=f"{len(text.references):,} sentences; 95 % intervals by "
            "bootstrap resampling. The paired tests compare a system with the "
            "first one.",
            header=["system", "metric", "score", "interval", "signature"],
            rows=[
                [
                    system,
                    metric,
                    f"{score.value:.2f}",
                    "" if score.interval is None else _interval(score),
                    score.signature,
                ]
                for system, by_metric in text.scores.items()
                for metric, score in by_metric.items()
            ],
        )
    ]
    if text.sources is not None:
        figures.append(_by_length(text))
    return figures


def _interval(score):
    return f"± {score.interval:.2f}"


def _by_length(text):
    groups = {
        system: bleu_by_source_length(
            text.sources, lines, text.references, **text.bleu_options
        )
        for system, lines in text.systems.items()
    }
    first = next(iter(groups.values()))
    return Bars(
        name="bleu_by_length",
        title="BLEU by the length of the source",
        caption="Number of sentences in brackets; BLEU of few sentences is not "
        "reliable.",
        names=[f"{group.label} ({group.num_sentences:,})" for group in first],
        series={
            system: [group.bleu.value for group in of_system]
            for system, of_system in groups.items()
        },
        y_label="BLEU",
        x_label="source words",
    )
