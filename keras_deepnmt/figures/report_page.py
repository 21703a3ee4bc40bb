"""One HTML page with the scores, curves, sentences and figures of runs."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keras_deepnmt.evaluation import sentence_bleu
from keras_deepnmt.figures.drawing import svg_text
from keras_deepnmt.figures.figure import Figure, Table
from keras_deepnmt.runs.test_translations import TestTranslations

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
