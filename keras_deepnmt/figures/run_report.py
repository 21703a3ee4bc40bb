"""The report of one or several runs: what its page holds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_deepnmt.evaluation import compare_systems, sign_test
from keras_deepnmt.figures.analyses import analyze
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.comparisons import score_figures, training_figures
from keras_deepnmt.figures.figure import Table
from keras_deepnmt.figures.report_page import (
    Section,
    report_page,
    sentence_tables,
)
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.test_translations import translate_runs


def report(
    run_dirs: Sequence[str | Path],
    *,
    num_resamples: int = 1_000,
    on_stage: Callable[[str], None] | None = None,
    **sentences: Any,
) -> str:
    """Makes one HTML page about runs, which needs no other file.

    It shows how the runs were trained, their scores on the test set with
    intervals and paired tests, BLEU by length, the best and worst
    translations, and all figures that the models' layers have. The scores are
    added to each run's `scores.json`.

    Args:
        run_dirs: folders of finished runs; those after the first one are
            compared with it.
        num_resamples: samples of the bootstrap intervals and tests.
        on_stage: called with a sentence when a part begins.
        **sentences: arguments of `AnalyzedRun`, such as `num_sentences=200`
            and `source_file`.

    Returns:
        The text of the page.

    Raises:
        ImportError: if matplotlib is not installed.
        UserError: if a run is not finished, or the runs have different test
            sets.

    Example:
    >>> page = report(["runs/plain", "runs/hybrid"])
    """
    # What would fail after the translation, which may take long.
    import matplotlib.figure  # noqa: F401

    show = on_stage or (lambda stage: None)
    names = [str(run_dir) for run_dir in run_dirs]
    show("Translating the test set")
    text = translate_runs(
        names,
        num_resamples=num_resamples,
        **{
            option: sentences[option]
            for option in (
                *("split", "source_file", "target_file"),
                *("prepared_dir", "compiled"),
            )
            if option in sentences
        },
    )
    scores = score_figures(text)
    if len(names) > 1:
        scores[1:1] = _comparisons(text, num_resamples)
    sections = [
        Section("Runs", [_runs(names)]),
        Section("Scores", scores),
        Section("Training", training_figures(names)),
        Section("Sentences", sentence_tables(text)),
    ]
    for name in names:
        run = AnalyzedRun(name, **sentences)
        figures = analyze(
            run, on_start=lambda each, n=name: show(f"{n}: {each.summary}")
        )
        sections.append(
            Section(
                f"Inside {name}" if len(names) > 1 else "Inside the model",
                figures,
                f"On {len(run.sources)} sentences of the test set.",
            )
        )
    return report_page(f"Report: {', '.join(names)}", sections)


def _runs(names):
    """How each run was trained."""
    rows = []
    for name in names:
        summary = RunFolder(name).read_summary()
        training = summary["training"]
        rows.append(
            [
                *(name, summary["name"], summary["preset"]),
                f"{summary['parameters']:,}",
                f"{summary['steps']:,}",
                f"{training['seconds'] / 60:.1f}",
                f"{training['target_tokens']:,}",
                summary["seed"],
                _device(summary["device"]),
                summary["versions"]["keras_deepnmt"],
            ]
        )
    return Table(
        name="runs",
        title="Training of each run",
        caption="Minutes of training with compilations and validations; "
        "tokens are real target tokens.",
        header=[
            *("run", "recipe", "preset", "parameters", "updates"),
            *("minutes", "target tokens", "seed", "device", "version"),
        ],
        rows=rows,
    )


def _device(device):
    """The processor, or the accelerators, with their number."""
    if device["accelerators"]:
        return ", ".join(map(str, device["accelerators"]))
    return f"{device['processor']}, {device['cores']} cores"


def _comparisons(text, num_resamples):
    """Paired tests of all systems against the first one."""
    baseline, *others = text.systems
    differences, signs = [], []
    for system in others:
        sides = text.systems[system], text.systems[baseline], text.references
        compared = compare_systems(
            *sides, **text.scoring, num_resamples=num_resamples
        )
        for metric, found in compared.items():
            differences.append(
                [
                    *(system, metric, f"{found.difference:+.2f}"),
                    f"{found.bootstrap_p_value:.4f}",
                    f"{found.randomization_p_value:.4f}",
                ]
            )
        test = sign_test(*sides, **text.bleu_options)
        signs.append(
            [system, test.better, test.worse, test.equal]
            + [f"{test.p_value:.4f}"]
        )
    return [
        Table(
            name="differences",
            title=f"Differences from {baseline}",
            caption="sacreBLEU's paired tests. p of approximate randomization "
            "is the probability of such a difference, in either direction, "
            "between equally good systems; read it where the two disagree. p "
            "of the bootstrap is about half of it for large differences, and "
            "never above about 0.45.",
            header=[
                *("system", "metric", "difference"),
                *("p (bootstrap)", "p (approximate randomization)"),
            ],
            rows=differences,
        ),
        Table(
            name="sign_test",
            title=f"Sign test against {baseline}",
            caption="Sentences whose replacement makes the corpus BLEU better "
            "or worse (Collins et al., 2005).",
            header=["system", "better", "worse", "equal", "p"],
            rows=signs,
        ),
    ]
