"""The nouns of the demo grammar with all their forms, and their compounds."""

from typing import NamedTuple

from keras_deepnmt.data.demo import english
from keras_deepnmt.data.demo.german import noun_forms
from keras_deepnmt.data.demo.noun_tables import COMPOUND_MODIFIERS, TABLES


class Noun(NamedTuple):
    """A noun: its gender, its German forms, its two English forms."""

    kind: str
    column: int
    forms: tuple[tuple[str, str], ...]
    english: tuple[str, str]
    countable: bool


def _noun(kind, line):
    gender, singular, plural, english_singular, *rest = line.split()
    column = "mfn".index("m" if gender == "w" else gender)
    countable = plural != "-"
    english_plural = rest[0] if rest else english.plural(english_singular)
    return Noun(
        kind,
        column,
        noun_forms(
            singular,
            plural if countable else singular,
            column,
            weak=gender == "w",
        ),
        (english_singular, english_plural),
        countable,
    )


def _compound(modifier, head):
    stem, english_modifier = modifier
    return head._replace(
        forms=tuple(
            tuple(stem + form.lower() for form in row) for row in head.forms
        ),
        english=tuple(f"{english_modifier} {form}" for form in head.english),
    )


NOUNS = {
    kind: tuple(_noun(kind, line) for line in table.strip().splitlines())
    for kind, table in TABLES.items()
}
COMPOUNDS = tuple(
    _compound(modifier, head)
    for modifier in COMPOUND_MODIFIERS
    for head in NOUNS["head"]
)
