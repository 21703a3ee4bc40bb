"""How German words of the demo grammar change: articles, adjectives, nouns.

A noun phrase agrees in case, gender and number. The three genders of the
singular and the plural, which knows no gender, are the four columns of every
table below; the four cases are its rows.
"""

import re

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
CASE_NAMES = ("nominative", "accusative", "dative", "genitive")
COLUMN_NAMES = ("masculine", "feminine", "neuter", "plural")

# Stands between the word "der" and its function until the sentence is whole.
LABEL_MARK = "/"

_DEFINITE = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
_RELATIVE = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "denen"),
    ("dessen", "deren", "dessen", "deren"),
)
# dies-, jed-, all-
_DIESER_ENDINGS = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
# ein-, kein-, mein-
_EIN_ENDINGS = (
    ("", "e", "", "e"),
    ("en", "e", "", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
# Named after the paradigm that the determiner before the adjective calls for.
ADJECTIVE_ENDINGS = {
    "weak": (
        ("e", "e", "e", "en"),
        ("en", "e", "e", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    "mixed": (
        ("er", "e", "es", "en"),
        ("en", "e", "es", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    "strong": (
        ("er", "e", "es", "e"),
        ("en", "e", "es", "e"),
        ("em", "er", "em", "en"),
        ("en", "er", "en", "er"),
    ),
}


def der_function(case: int, column: int, relative: bool = False) -> str:
    """Names what a "der" does: its case and its gender, or "plural"."""
    name = f"{CASE_NAMES[case]}_{COLUMN_NAMES[column]}"
    return f"relative_{name}" if relative else name


def _labelled(table, relative):
    return tuple(
        tuple(
            f"der{LABEL_MARK}{der_function(case, column, relative)}"
            if word == "der"
            else word
            for column, word in enumerate(row)
        )
        for case, row in enumerate(table)
    )


DEFINITE = _labelled(_DEFINITE, relative=False)
RELATIVE = _labelled(_RELATIVE, relative=True)
DER_FUNCTIONS = tuple(
    word.split(LABEL_MARK)[1]
    for table in (DEFINITE, RELATIVE)
    for row in table
    for word in row
    if LABEL_MARK in word
)


def determiner_forms(stem: str, paradigm: str) -> tuple:
    """Returns the table of a determiner's forms, `[case][column]`.

    Args:
        stem: The determiner without its ending: `"dies"`, `"mein"`.
        paradigm: `"dieser"`, `"ein"`, or `"fixed"` for a word that never
            changes (a numeral).

    Returns:
        Four rows (cases) of four forms (masculine, feminine, neuter, plural).

    Example:
    >>> determiner_forms("mein", "ein")[DATIVE]
    ('meinem', 'meiner', 'meinem', 'meinen')
    """
    if paradigm == "fixed":
        return ((stem,) * 4,) * 4
    endings = _DIESER_ENDINGS if paradigm == "dieser" else _EIN_ENDINGS
    return tuple(tuple(stem + ending for ending in row) for row in endings)


def adjective_forms(stem: str) -> dict[str, str]:
    """Returns an adjective's form for each ending.

    Args:
        stem: The adjective without an ending: `"alt"`, `"teur"`, `"müde"`.

    Returns:
        The forms, keyed by ending (`"e"`, `"en"`, `"em"`, `"er"`, `"es"`).

    Example:
    >>> adjective_forms("müde")["en"]
    'müden'
    """
    stem = stem.removesuffix("e")
    return {ending: stem + ending for ending in ("e", "en", "em", "er", "es")}


def _genitive(singular):
    if singular[-1] in "aeiouäöü" and not singular.endswith("ei"):
        return singular + "s"
    if singular[-1] in "sßzx" or singular.endswith("sch"):
        return singular + "es"
    vowels = len(re.findall("[aeiouyäöü]+", singular.lower()))
    return singular + ("es" if vowels == 1 else "s")


def noun_forms(
    singular: str, plural: str, column: int, weak: bool = False
) -> tuple[tuple[str, str], ...]:
    """Declines a noun.

    Args:
        singular: The nominative singular.
        plural: The nominative plural.
        column: The gender: `MASCULINE`, `FEMININE` or `NEUTER`.
        weak: Whether it is of the n-declension (*der Student, den Studenten*),
            where every form but the nominative singular is the plural's.

    Returns:
        Per case: the singular and the plural form.

    Example:
    >>> noun_forms("Kind", "Kinder", NEUTER)
    (('Kind', 'Kinder'), ('Kind', 'Kinder'), ('Kind', 'Kindern'), ('Kindes', \
'Kinder'))
    """
    dative_plural = plural if plural[-1:] in ("n", "s") else plural + "n"
    if weak:
        oblique = genitive = plural
    else:
        oblique = singular
        genitive = singular if column == FEMININE else _genitive(singular)
    return (
        (singular, plural),
        (oblique, plural),
        (oblique, dative_plural),
        (genitive, plural),
    )


def present_forms(infinitive: str, third: str) -> tuple[str, str, str]:
    """Returns a verb's present for *ich*, *er/sie/es* and the plural.

    Args:
        infinitive: The infinitive without a separable prefix.
        third: The third person singular, or `""` where it is regular.

    Returns:
        The three forms.

    Example:
    >>> present_forms("arbeiten", "")
    ('arbeite', 'arbeitet', 'arbeiten')
    """
    stem = verb_stem(infinitive)
    return stem + "e", third or stem + _weak_ending(stem), infinitive


def participle(infinitive: str) -> str:
    """Returns the regular past participle of a verb without a prefix.

    Args:
        infinitive: The infinitive.

    Returns:
        The participle: *ge-…-t*, without *ge-* where the first syllable is
        unstressed.

    Example:
    >>> participle("suchen"), participle("besuchen"), participle("reparieren")
    ('gesucht', 'besucht', 'repariert')
    """
    stem = verb_stem(infinitive)
    bare = infinitive.endswith("ieren") or re.match(
        "(be(?!t)|ver|er|ent|zer)", infinitive
    )
    return ("" if bare else "ge") + stem + _weak_ending(stem)


def verb_stem(infinitive: str) -> str:
    """Returns the infinitive without *-en* or *-n*."""
    return infinitive.removesuffix("n").removesuffix("e")


def _weak_ending(stem):
    return "et" if stem[-1] in "td" else "t"
