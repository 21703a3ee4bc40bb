"""Inflection of German words in the demo grammar.

A noun phrase agrees in case, gender and number. The columns of every table
below are the three genders of the singular and the plural, which does not
distinguish genders; the rows are the four cases.
"""

import re

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
CASE_NAMES = ("nominative", "accusative", "dative", "genitive")
COLUMN_NAMES = ("masculine", "feminine", "neuter", "plural")

# Separates the word "der" from its function until the sentence is complete.
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
# By the declension that the determiner before the adjective requires.
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
    """Names the function of a "der": its case, and its gender or "plural"."""
    name = f"{CASE_NAMES[case]}_{COLUMN_NAMES[column]}"
    return f"relative_{name}" if relative else name


def _labeled(table, relative):
    return tuple(
        tuple(
            f"der{LABEL_MARK}{der_function(case, column, relative)}"
            if word == "der"
            else word
            for column, word in enumerate(row)
        )
        for case, row in enumerate(table)
    )


DEFINITE = _labeled(_DEFINITE, relative=False)
RELATIVE = _labeled(_RELATIVE, relative=True)
DER_FUNCTIONS = tuple(
    word.split(LABEL_MARK)[1]
    for table in (DEFINITE, RELATIVE)
    for row in table
    for word in row
    if LABEL_MARK in word
)


def determiner_forms(stem: str, paradigm: str) -> tuple:
    """Returns the forms of a determiner as a table `[case][column]`.

    `stem` is the determiner without its ending (`"dies"`, `"mein"`); `paradigm`
    is `"dieser"`, `"ein"`, or `"fixed"` for a word that does not change (a
    numeral).

    Example:
    >>> determiner_forms("mein", "ein")[DATIVE]
    ('meinem', 'meiner', 'meinem', 'meinen')
    """
    if paradigm == "fixed":
        return ((stem,) * 4,) * 4
    endings = _DIESER_ENDINGS if paradigm == "dieser" else _EIN_ENDINGS
    return tuple(tuple(stem + ending for ending in row) for row in endings)


def adjective_forms(stem: str) -> dict[str, str]:
    """Returns the forms of an adjective by their endings (`"e"`, `"en"`, ...).

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
    """Returns the singular and the plural form of a noun for each case.

    `singular` and `plural` are the nominatives, `column` is the gender. A
    `weak` noun follows the n-declension (*der Student, den Studenten*): all
    forms but the nominative singular equal the plural.

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
    """Returns the present of a verb for *ich*, *er/sie/es* and the plural.

    `infinitive` has no separable prefix; `third` is the third person singular,
    or `""` if it is regular.

    Example:
    >>> present_forms("arbeiten", "")
    ('arbeite', 'arbeitet', 'arbeiten')
    """
    stem = verb_stem(infinitive)
    return stem + "e", third or stem + _weak_ending(stem), infinitive


def participle(infinitive: str) -> str:
    """Returns the regular past participle of a verb without a separable prefix.

    It is *ge-…-t*, without *ge-* if the first syllable is unstressed.

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
