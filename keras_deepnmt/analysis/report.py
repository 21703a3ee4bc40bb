"""The report of one or several runs: one HTML page with all results."""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_deepnmt.analysis.analyses import analyze
from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.comparisons import score_figures, training_figures
from keras_deepnmt.analysis.drawing import svg_text
from keras_deepnmt.analysis.figure import Figure, Table
from keras_deepnmt.evaluation import format_p_value, sentence_bleu, sign_test
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.test_translations import (
    TestTranslations,
    translate_runs,
)
from keras_deepnmt.translator import Translator

# Sentences with the best and the worst translations.
NUM_SENTENCES = 5
# A longer table is folded away.
MOST_ROWS = 15
_STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.45; color: #111;
       margin: 0 auto; padding: 1rem; max-width: 60rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; font-size: 1.3rem;
     border-bottom: 2px solid #0072b2; } h3 { font-size: 1.05rem; }
nav a { display: inline-block; margin-right: 1rem; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figcaption { font-size: 0.85rem; color: #444; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0; }
th, td { border-bottom: 1px solid #ccc; padding: 0.25rem 0.6rem;
         text-align: left; vertical-align: top; }
td { max-width: 22rem; overflow-wrap: break-word; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 40rem) { .wide svg { max-width: none; min-width: 30rem; } }
@media print { nav { display: none; } body { max-width: none; } }
"""


def report(
    run_dirs: Sequence[str | Path],
    *,
    num_resamples: int = 1_000,
    on_stage: Callable[[str], None] | None = None,
    on_loaded: Callable[[Translator, list[str]], None] | None = None,
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
    names = [str(run_dir) for run_dir in run_dirs]
    show("Translating the test set")
    text = translate_runs(
        names,
        num_resamples=num_resamples,
        on_loaded=on_loaded,
        **{
            option: sentences[option]
            for option in (
                *("split", "source_file", "target_file"),
                *("prepared_dir", "compiled"),
                *("prefixes", "constraints", "max_lengths"),
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
        compared = text.compare(system, baseline, num_resamples)
        for metric, found in compared.items():
            differences.append(
                [
                    *(system, metric, f"{found.difference:+.2f}"),
                    format_p_value(found.bootstrap_p_value),
                    format_p_value(found.randomization_p_value),
                ]
            )
        test = sign_test(*sides, **text.bleu_options)
        signs.append(
            [system, test.better, test.worse, test.equal]
            + [format_p_value(test.p_value)]
        )
    return [
        Table(
            name="differences",
            title=f"Differences from {baseline}",
            caption="Paired tests. p of approximate randomization "
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


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: Its heading.
        figures: What it shows.
        note: A sentence below the heading.
    """

    title: str
    figures: Sequence[Figure]
    note: str = ""


def report_page(title: str, sections: Iterable[Section]) -> str:
    """Makes a page that needs no other file and no network.

    Args:
        title: The heading of the page.
        sections: Its parts; those without figures are left out.

    Returns:
        The text of an HTML file.
    """
    sections = [section for section in sections if section.figures]
    links = "".join(
        f'<a href="#part-{number}">{html.escape(section.title)}</a>'
        for number, section in enumerate(sections)
    )
    parts = "".join(
        f'<section id="part-{number}"><h2>{html.escape(section.title)}</h2>'
        f"{_paragraph(section.note)}"
        f"{''.join(map(_shown, section.figures))}</section>\n"
        for number, section in enumerate(sections)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1><nav>{links}</nav>\n"
        f"{parts}</body></html>\n"
    )


def sentence_tables(
    text: TestTranslations, number: int = NUM_SENTENCES
) -> list[Table]:
    """The sentences with the best and the worst translations of each system.

    They are ordered by sentence BLEU; equal ones by their place.
    """
    tables = []
    for system, lines in text.systems.items():
        scores = sentence_bleu(lines, text.references, **text.bleu_options)
        order = sorted(range(len(scores)), key=lambda row: -scores[row])
        several = len(text.systems) > 1
        for kind, rows in (
            ("Best", order[:number]),
            ("Worst", order[number:][-number:][::-1]),
        ):
            tables.append(
                Table(
                    name=f"{kind.lower()}_sentences",
                    title=f"{kind} translations"
                    f"{f' of {system}' if several else ''}",
                    caption="By sentence BLEU.",
                    header=[
                        *("sentence", "BLEU"),
                        *("source", "translation", "reference"),
                    ],
                    rows=[
                        [
                            row + 1,
                            round(scores[row], 1),
                            text.sources[row] if text.sources else "",
                            lines[row],
                            text.references[row],
                        ]
                        for row in rows
                    ],
                )
            )
    return tables


def _shown(figure):
    if isinstance(figure, Table):
        content = _table(figure)
    else:
        # Without the XML declaration, which HTML does not have.
        svg = svg_text(figure, titled=False)
        content = svg[svg.index("<svg") :]
    return (
        f"<figure><h3>{html.escape(figure.title)}</h3>"
        f'<div class="wide">{content}</div>'
        f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>\n"
    )


def _table(figure):
    header, *rows = figure.table()
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><tr>{head}</tr>{body}</table>"
    if len(rows) <= MOST_ROWS:
        return table
    return f"<details><summary>{len(rows)} rows</summary>{table}</details>"


def _cell(value):
    kind = ' class="number"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{html.escape(str(value))}</td>"


def _paragraph(text):
    return f"<p>{html.escape(text)}</p>" if text else ""
