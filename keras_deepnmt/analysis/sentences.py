"""Translations of sentences side by side, with marks where words differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from keras_deepnmt.analysis.figure import Figure, Rows
from keras_deepnmt.data.word_units import word_spans
from keras_deepnmt.evaluation import sentence_bleu
from keras_deepnmt.runs.test_translations import TestTranslations

# A page with more sentences would become slow. The first ones by each order are
# always among them, the others are spread evenly over the text.
MOST_SENTENCES = 600
_FIRST = 40


@dataclass(frozen=True, kw_only=True)
class Sentences(Figure):
    """Texts with their references and the translations of systems.

    Attributes:
        name, title, caption: See `Figure`.
        places: Places of the sentences in the text, from 0.
        sources: The sentences; `None` if they are not known.
        references: Their references.
        systems: For each system the translations.
        scores: For each system the BLEU of each sentence.
        languages: Codes of both languages, each `None` if it is not known.
    """

    places: Sequence[int]
    sources: Sequence[str] | None
    references: Sequence[str]
    systems: Mapping[str, Sequence[str]]
    scores: Mapping[str, Sequence[float]]
    languages: tuple[str | None, str | None] = (None, None)

    def table(self) -> Rows:
        names = list(self.systems)
        rows: Rows = [
            ["sentence", "source", "reference"]
            + [column for name in names for column in (name, f"BLEU, {name}")]
        ]
        for row, place in enumerate(self.places):
            source = "" if self.sources is None else self.sources[row]
            rows.append([place + 1, source, self.references[row]])
            for name in names:
                score = round(self.scores[name][row], 1)
                rows[-1] += [self.systems[name][row], score]
        return rows

    def mean(self, row: int) -> float:
        """The mean BLEU of a sentence over the systems."""
        values = self.of_row(row)
        return sum(values) / len(values)

    def spread(self, row: int) -> float:
        """How much the BLEU of a sentence differs between systems."""
        values = self.of_row(row)
        return max(values) - min(values)

    def of_row(self, row: int) -> list[float]:
        """The BLEU of a sentence, a value for each system."""
        return [values[row] for values in self.scores.values()]


def sentence_figure(
    text: TestTranslations, source_language: str | None = None
) -> Sentences:
    """Puts the translations of a test set side by side."""
    several = len(text.systems) > 1
    whole = Sentences(
        name="sentences",
        title="Translations side by side" if several else "Translations",
        caption="Marked: words that the reference does not have there; […]: "
        "words of the reference are missing. The pointer shows what the "
        "reference has. Sentence BLEU tells little about a single sentence.",
        places=range(len(text.references)),
        sources=text.sources,
        references=text.references,
        systems=text.systems,
        scores={
            system: sentence_bleu(lines, text.references, **text.bleu_options)
            for system, lines in text.systems.items()
        },
        languages=(source_language, text.language),
    )
    number = len(text.references)
    if number <= MOST_SENTENCES:
        return whole
    rows = range(number)
    by_mean = sorted(rows, key=whole.mean)
    by_spread = sorted(rows, key=whole.spread, reverse=True)
    first = {*by_mean[:_FIRST], *by_mean[-_FIRST:], *by_spread[:_FIRST]}
    step = number / (MOST_SENTENCES - len(first))
    spread = {int(place * step) for place in range(int(number / step))}
    kept = sorted(first | spread)

    def of_kept(values):
        return None if values is None else [values[row] for row in kept]

    return Sentences(
        name=whole.name,
        title=whole.title,
        caption=f"{len(kept)} of {number:,} sentences: the best, the worst, "
        "those that differ most between runs, and others spread over the text. "
        f"{whole.caption}",
        places=kept,
        sources=of_kept(whole.sources),
        references=of_kept(whole.references),
        systems={name: of_kept(v) for name, v in whole.systems.items()},
        scores={name: of_kept(v) for name, v in whole.scores.items()},
        languages=whole.languages,
    )


def compared_words(text: str, reference: str) -> list[tuple[str, str | None]]:
    """Cuts a text into parts that are as in the reference, and others.

    The words that both have in the same order are found by `difflib`; where a
    script has no spaces, letters count as words. Each part comes with what the
    reference has in its place: `None` for the same words. An empty part has
    words of the reference that are missing in the text.
    """
    spans, others = word_spans(text), word_spans(reference)
    matcher = SequenceMatcher(
        None,
        [text[start:end] for start, end in spans],
        [reference[start:end] for start, end in others],
        autojunk=False,
    )
    parts: list[tuple[str, str | None]] = []
    at = 0
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            continue
        there = ""
        if first < last:
            there = reference[others[first][0] : others[last - 1][1]]
        if start < end:
            begin, stop = spans[start][0], spans[end - 1][1]
        else:
            begin = stop = spans[start][0] if start < len(spans) else len(text)
        parts.append((text[at:begin], None))
        parts.append((text[begin:stop], there))
        at = stop
    parts.append((text[at:], None))
    return [part for part in parts if part != ("", None)]
