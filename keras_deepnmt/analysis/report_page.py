"""Makes one HTML page of figures, which needs no other file and no network."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from keras_deepnmt.analysis.drawing import num_columns, page_svg
from keras_deepnmt.analysis.figure import Figure, Table
from keras_deepnmt.analysis.sentences import Sentences, compared_words

# A longer table is folded away.
MOST_ROWS = 15
_CUE = (
    '<span class="cue" aria-hidden="true">Wider than the page: scroll →</span>'
)
# Such as `1,200`, `+1.20`, `43.1 ± 0.9`, `< 0.0001`, `-inf`, or nothing.
_NUMBER = re.compile(
    r"(<? ?[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?|[-+]?inf|nan)?( ?± \d+\.?\d*)?"
)
_SPANS = {1: "one", 2: "two", 3: "three"}


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: Its heading.
        groups: Figures that stand beside each other, as far as they fit.
        note: A sentence below the heading.
    """

    title: str
    groups: Sequence[Sequence[Figure]]
    note: str = ""


def report_page(title: str, sections: Iterable[Section]) -> str:
    """Makes the text of an HTML page that needs no other file and no network.

    Sections without figures are left out.
    """
    sections = [section for section in sections if any(section.groups)]
    links = "".join(
        f'<a href="#part-{number}">{html.escape(section.title)}</a>'
        for number, section in enumerate(sections)
    )
    parts = "".join(
        _section(number, section) for number, section in enumerate(sections)
    )
    # It looks as the web page of a server does.
    look = _read("keras_deepnmt.server", "page/look.css")
    style, script = (
        _read("keras_deepnmt.analysis", f"report_page.{kind}")
        for kind in ("css", "js")
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>\n<style>\n{look}"
        f"{style}</style></head>"
        f"\n<body><header><h1>{html.escape(title)}</h1></header>\n"
        f'<nav aria-label="Parts of the report">{links}</nav>\n<main>\n{parts}'
        f"</main>\n<script>\n{script}</script></body></html>\n"
    )


def _read(package, name):
    file = resources.files(package).joinpath(name)
    return file.read_text(encoding="utf-8")


def _section(number, section):
    grids = "".join(
        f'<div class="grid">{"".join(figures)}</div>\n'
        for figures in (
            [
                _figure(figure, f"f{number}-{place}-{index}")
                for index, figure in enumerate(group)
            ]
            for place, group in enumerate(section.groups)
        )
        if figures
    )
    note = f'<p class="note">{html.escape(section.note)}</p>\n'
    return (
        f'<section id="part-{number}"><h2>{html.escape(section.title)}</h2>\n'
        f"{note if section.note else ''}{grids}</section>\n"
    )


def _figure(figure, name):
    heading = f"<h3>{html.escape(figure.title)}</h3>"
    caption = f"<figcaption>{html.escape(figure.caption)}</figcaption>"
    if isinstance(figure, Sentences):
        kind, content = "sentences", _sentences(figure)
        # Before the sentences, which may be many.
        return f'<figure class="{kind}">{heading}{caption}{content}</figure>\n'
    if isinstance(figure, Table):
        kind, content = "table", _folded(figure)
    else:
        kind = _SPANS[num_columns(figure)]
        content = _scrolled(page_svg(figure, name), figure.title)
        table = _scrolled(_table(figure), f"Values: {figure.title}")
        caption += f"<details><summary>Values</summary>{table}</details>"
    return f'<figure class="{kind}">{heading}{content}{caption}</figure>\n'


def _scrolled(content, label):
    return (
        f'<div>{_CUE}<div class="scroll" role="group" '
        f'aria-label="{html.escape(label)}">{content}</div></div>'
    )


def _folded(figure):
    table = _scrolled(_table(figure), figure.title)
    number = len(figure.rows)
    if number <= MOST_ROWS:
        return table
    return f"<details><summary>{number} rows</summary>{table}</details>"


def _table(figure):
    header, *rows = figure.table()
    numeric = [
        any(row[place] != "" for row in rows)
        and all(_is_number(row[place]) for row in rows)
        for place in range(len(header))
    ]
    head = "".join(
        f'<th scope="col"{_kind(is_number)}>{html.escape(str(name))}</th>'
        for name, is_number in zip(header, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_kind(is_number)}>{html.escape(str(value))}</td>"
            for value, is_number in zip(row, numeric, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _kind(is_number):
    return ' class="number"' if is_number else ""


def _is_number(value):
    return _NUMBER.fullmatch(str(value)) is not None


def _sentences(figure):
    orders = {
        "spread -1": "BLEU differs most between runs first",
        "bleu 1": "lowest BLEU first",
        "bleu -1": "highest BLEU first",
        "place 1": "as in the text",
    }
    if len(figure.systems) == 1:
        del orders["spread -1"]
        rows = sorted(range(len(figure.places)), key=figure.mean)
    else:
        rows = sorted(
            range(len(figure.places)), key=figure.spread, reverse=True
        )
    options = "".join(
        f'<option value="{value}">{text}</option>'
        for value, text in orders.items()
    )
    items = "".join(_sentence(figure, row) for row in rows)
    return (
        f'<div class="controls"><label>Order: <select>{options}</select>'
        '</label><label>Only with: <input type="search" '
        'placeholder="a word"></label><output></output></div>'
        f'<ol class="pairs">{items}</ol>'
        '<button type="button" class="more" hidden>Show more</button>'
    )


def _sentence(figure, row):
    source_language, language = figure.languages
    place, reference = figure.places[row], figure.references[row]
    given = []
    if figure.sources is not None:
        label = f"{place + 1:,} · source"
        source = html.escape(figure.sources[row])
        given.append(_text(label, source, source_language))
    label = "reference" if given else f"{place + 1:,} · reference"
    given.append(_text(label, html.escape(reference), language))
    made = [
        _text(
            f"{name} · BLEU {figure.scores[name][row]:.1f}",
            _marked(lines[row], reference),
            language,
        )
        for name, lines in figure.systems.items()
    ]
    # A single translation stands beside what was given.
    groups = [given, made] if len(made) > 1 else [given + made]
    sides = "".join(
        f'<div class="side">{"".join(texts)}</div>' for texts in groups
    )
    return (
        f'<li data-place="{place}" data-bleu="{figure.mean(row):.2f}" '
        f'data-spread="{figure.spread(row):.2f}">{sides}</li>\n'
    )


def _text(label, content, language):
    lang = f' lang="{html.escape(language)}"' if language else ""
    return (
        f'<div><div class="label">{html.escape(label)}</div>'
        f'<p dir="auto"{lang}>{content}</p></div>'
    )


def _marked(text, reference):
    return "".join(
        html.escape(part) if there is None else _mark(part, there)
        for part, there in compared_words(text, reference)
    )


def _mark(part, there):
    if not part:
        missing = f"missing: {html.escape(there)}"
        return (
            f'<span class="gap" role="img" aria-label="{missing}" '
            f'data-value="{missing}">[…]</span>'
        )
    value = f"reference: {there}" if there else "not in the reference"
    return f'<mark data-value="{html.escape(value)}">{html.escape(part)}</mark>'
