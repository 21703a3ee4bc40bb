"""Figures that compare runs: curves of training, scores, BLEU by length."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_deepnmt.analysis.figure import Bars, Figure, Lines, Table
from keras_deepnmt.data.word_units import describe_words
from keras_deepnmt.evaluation import bleu_by_source_length, format_p_value
from keras_deepnmt.evaluation.own_metrics import (
    direction,
    is_better_if_lower,
)
from keras_deepnmt.evaluation.scores import metric_label
from keras_deepnmt.runs.comparisons import (
    NOT_COVERED,
    describe_disagreements,
    has_seeds,
    paired_tests,
    seed_differences,
    seed_scores,
)
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
        name: [row for _, row in RunFolder.find(run_dir).history()]
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
        name: [
            (row["step"], row["val_loss"])
            for row in rows
            # A loss that is not a number reaches nothing.
            if "step" in row and math.isfinite(row.get("val_loss", math.nan))
        ]
        for name, rows in logs.items()
    }
    curves = {name: curve for name, curve in curves.items() if curve}
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
    """Makes a table of scores, bars of each, and BLEU by source length.

    Args:
        text: translations of one or several systems, from
            `runs.test_translations`.

    Returns:
        The table, with intervals and signatures; with several systems bars of
        each score; BLEU of groups of sentences if the sources are known.
    """
    metrics = list(next(iter(text.scores.values())))
    signatures = {
        metric: dict.fromkeys(
            by_metric[metric].signature for by_metric in text.scores.values()
        )
        for metric in metrics
    }
    lower = "".join(
        f"{metric_label(metric)} is better if it is lower. "
        for metric in filter(is_better_if_lower, metrics)
    )
    told = "; ".join(
        f"{metric_label(metric)}: {', '.join(found)}"
        for metric, found in signatures.items()
    )
    figures: list[Figure] = [
        Table(
            name="scores",
            title="Scores",
            caption=f"{len(text.references):,} sentences, 95 % intervals by "
            f"bootstrap resampling of the sentences. {lower}Signatures of "
            f"sacreBLEU: {told}.",
            header=["run", *map(metric_label, metrics)],
            rows=[
                [system, *(_value(by_metric[metric]) for metric in metrics)]
                for system, by_metric in text.scores.items()
            ],
        )
    ]
    if len(text.systems) > 1:
        figures += [_bars(text, metric) for metric in metrics]
    if text.sources is not None:
        figures.append(_by_length(text))
    return figures


def _value(score):
    interval = "" if score.interval is None else f" ± {score.interval:.2f}"
    return f"{score.value:.2f}{interval}"


def _bars(text, metric):
    found = [by_metric[metric] for by_metric in text.scores.values()]
    label = metric_label(metric)
    return Bars(
        name=f"{metric}_of_runs",
        title=f"{label} of each run",
        caption="95 % intervals by bootstrap resampling of the sentences.",
        names=list(text.scores),
        series={label: [score.value for score in found]},
        intervals={
            label: [
                math.nan if score.interval is None else score.interval
                for score in found
            ]
        },
        y_label=_axis(metric),
        as_points=True,
    )


def _axis(metric):
    label = metric_label(metric)
    return f"{label} (lower is better)" if is_better_if_lower(metric) else label


def comparison_figures(
    text: TestTranslations, num_resamples: int
) -> list[list[Figure]]:
    """Makes tables over seeds, and of paired tests.

    Returns what recipes with several seeds have, and what runs of different
    recipes have: groups of figures, which may be empty. `num_resamples` is that
    of the bootstrap test.
    """
    return [_over_seeds(text), _tests(paired_tests(text, num_resamples))]


def _over_seeds(text):
    if not has_seeds(text.recipes):
        return []
    means = seed_scores(text)
    columns = ["seeds", "mean", "standard deviation", "95 % interval", "better"]
    tables: list[Figure] = [
        Table(
            name="scores_over_seeds",
            title="Scores over seeds",
            caption="Runs of one recipe with different seeds. Standard "
            "deviation with n - 1; intervals of the mean by Student's t "
            "distribution, on these sentences.",
            header=["recipe", "score", *columns],
            rows=[
                [row.recipe, metric_label(row.metric), *_statistics(row, "")]
                for row in means
            ],
        )
    ]
    differences = seed_differences(text)
    if differences:
        tables.append(
            Table(
                name="differences_over_seeds",
                title=f"Differences from {text.recipes[0].name} over seeds",
                caption="Differences of runs with the same seed. An interval "
                "without zero: seeds alone hardly explain the difference.",
                header=["recipe", "score", *columns],
                rows=[
                    [row.recipe, metric_label(row.metric)]
                    + _statistics(row, "+")
                    for row in differences
                ],
            )
        )
    for metric in dict.fromkeys(row.metric for row in means):
        label = metric_label(metric)
        rows = [row for row in means if row.metric == metric]
        tables.append(
            Bars(
                name=f"{metric}_over_seeds",
                title=f"{label} over seeds",
                caption="Mean, with the 95 % interval by Student's t.",
                names=_without_common_name([row.recipe for row in rows]),
                series={label: [row.statistics.mean for row in rows]},
                intervals={label: [row.statistics.interval for row in rows]},
                y_label=_axis(metric),
                as_points=True,
            )
        )
    return tables


def _without_common_name(names):
    """Recipes that have one name are told apart by what stands in brackets."""
    parts = [name.partition(" (") for name in names]
    if len({before for before, _, _ in parts}) > 1:
        return names
    return [inner.removesuffix(")") or name for name, _, inner in parts]


def _statistics(row, sign):
    seeds, better = ", ".join(map(str, row.seeds)), direction(row.metric)
    found = row.statistics
    if found is None:
        return ["none in common", "", "", "", better]
    mean = f"{found.mean:{sign}.2f}"
    if found.number == 1:
        return [seeds, mean, "", "", better]
    interval = f"± {found.interval:.2f}"
    return [seeds, mean, f"{found.deviation:.2f}", interval, better]


def _tests(tests):
    """Paired tests of runs against those of the first recipe."""
    if not tests:
        return []
    tables: list[Figure] = [
        Table(
            name="differences",
            title="Differences between runs",
            caption=f"{NOT_COVERED} p of approximate randomization is the "
            "probability of such a difference, in either direction, between "
            "equally good systems; read it where the two disagree. p of the "
            "bootstrap is about half of it for large differences, and never "
            f"above about 0.45. {describe_disagreements(tests) or ''}".rstrip(),
            header=[
                *("run", "compared with", "score", "difference"),
                *("p (approximate randomization)", "p (bootstrap)", "better"),
            ],
            rows=[
                [
                    *(test.system, test.baseline, metric_label(metric)),
                    f"{found.difference:+.2f}",
                    format_p_value(found.randomization_p_value),
                    format_p_value(found.bootstrap_p_value),
                    direction(metric),
                ]
                for test in tests
                for metric, found in test.metrics.items()
            ],
        )
    ]
    rows = [
        [
            *(test.system, test.baseline, test.signs.better),
            *(test.signs.worse, test.signs.equal),
            format_p_value(test.signs.p_value),
        ]
        for test in tests
        if test.signs
    ]
    if rows:
        tables.append(
            Table(
                name="sign_test",
                title="Sign test",
                caption="Sentences whose replacement makes the corpus BLEU "
                "better or worse (Collins et al., 2005).",
                header=["run", "compared with", "better", "worse", "equal"]
                + ["p"],
                rows=rows,
            )
        )
    return tables


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
        x_label=f"source {describe_words(text.sources)}",
    )
