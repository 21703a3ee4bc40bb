"""Adjectives, adverbs, determiners and function words of the demo grammar."""

from typing import NamedTuple

from tools.demo_corpus.german import (
    DEFINITE,
    adjective_forms,
    determiner_forms,
)

# German, English, and the nouns it goes with: (a)nimate, (t)hings, (p)laces,
# (f)ood. After a slash: the stem before endings, if it differs.
_ADJECTIVES = """
    alt old atp
    jung young a
    groß big atpf
    klein small atpf
    neu new tp
    schön beautiful atp
    müde tired a
    glücklich happy a
    traurig sad a
    freundlich friendly a
    stark strong a
    schwach weak a
    reich rich a
    arm poor a
    klug clever a
    mutig brave a
    faul lazy a
    hungrig hungry a
    krank sick a
    gesund healthy af
    berühmt famous ap
    ruhig calm a
    wild wild a
    teuer/teur expensive tf
    billig cheap tf
    schwer heavy t
    leicht light t
    rot red t
    blau blue t
    grün green t
    gelb yellow t
    schwarz black t
    rund round t
    sauber clean tp
    schmutzig dirty tp
    dunkel/dunkl dark tp
    hell bright tp
    leer empty p
    warm warm pf
    kalt cold pf
    frisch fresh f
    süß sweet f
    lecker tasty f
    modern modern tp
    seltsam strange atpf
    interessant interesting tp
"""
_KIND_LETTERS = {
    "a": ("person", "kin", "animal"),
    "t": ("thing", "head", "device", "text", "garment"),
    "p": ("place",),
    "f": ("food", "meal", "drink"),
}


class Adjective(NamedTuple):
    """An adjective: its base form, its form for each ending, its English."""

    german: str
    forms: dict[str, str]
    english: str
    letters: str


def _adjective(line):
    german, english, letters = line.split()
    german, _, stem = german.partition("/")
    return Adjective(german, adjective_forms(stem or german), english, letters)


ADJECTIVES = tuple(map(_adjective, _ADJECTIVES.strip().splitlines()))
ADJECTIVES_OF_KIND = {
    kind: tuple(item for item in ADJECTIVES if letter in item.letters)
    for letter, kinds in _KIND_LETTERS.items()
    for kind in kinds
}


class Determiner(NamedTuple):
    """A determiner: forms, English, and the adjective declension after it."""

    forms: tuple
    english: tuple[str, ...]
    paradigm: str
    definite: bool


def _determiner(stem, english, family, paradigm, definite=False):
    return Determiner(
        determiner_forms(stem, family), (english,), paradigm, definite
    )


THE = Determiner(DEFINITE, ("the",), "weak", True)
# Whether it is "a" or "an" depends on the next word and is chosen later.
A = _determiner("ein", "a", "ein", "mixed")
NONE = Determiner((("",) * 4,) * 4, (), "strong", False)
THIS = _determiner("dies", "this", "dieser", "weak", True)
THESE = _determiner("dies", "these", "dieser", "weak", True)
EVERY = _determiner("jed", "every", "dieser", "weak")
ALL = _determiner("all", "all", "dieser", "weak")
NO = _determiner("kein", "no", "ein", "mixed")
MY = _determiner("mein", "my", "ein", "mixed", True)
OUR = _determiner("unser", "our", "ein", "mixed", True)
HIS = _determiner("sein", "his", "ein", "mixed", True)
NUMERALS = tuple(
    _determiner(german, english, "fixed", "strong")
    for german, english in (
        ("zwei", "two"),
        ("drei", "three"),
        ("vier", "four"),
        ("fünf", "five"),
        ("zehn", "ten"),
    )
)
MANY = Determiner(
    (("viele",) * 4, ("viele",) * 4, ("vielen",) * 4, ("vieler",) * 4),
    ("many",),
    "strong",
    False,
)

# German, English, and the tenses it goes with: present, past, modal.
TIMES = tuple(
    tuple(part.strip() for part in line.split(":"))
    for line in """
        heute : today : present past modal
        jetzt : now : present modal
        gestern : yesterday : past
        morgen : tomorrow : modal
        letzte Woche : last week : past
        nächste Woche : next week : modal
        am Abend : in the evening : present past modal
        am Morgen : in the morning : present past modal
        am Montag : on Monday : present past modal
        am Freitag : on Friday : present past modal
        am Sonntag : on Sunday : present past modal
        im Sommer : in the summer : present past modal
        im Winter : in the winter : present past modal
        jeden Tag : every day : present past modal
        oft : often : present past modal
        manchmal : sometimes : present past modal
        wieder : again : present past modal
    """.strip().splitlines()
)
TIMES_OF_TENSE = {
    tense: tuple(
        (german.split(), english.split())
        for german, english, tenses in TIMES
        if tense in tenses
    )
    for tense in ("present", "past", "modal")
}
MANNERS = (
    ("schnell", "quickly"),
    ("langsam", "slowly"),
    ("leise", "quietly"),
    ("laut", "loudly"),
    ("gern", "gladly"),
    ("vorsichtig", "carefully"),
    ("allein", "alone"),
)
PREPOSITIONS = (
    ("in", "in"),
    ("hinter", "behind"),
    ("neben", "next to"),
    ("vor", "in front of"),
    ("auf", "on"),
    ("unter", "under"),
    ("nach", "to"),
    ("zu", "to"),
    ("mit", "with"),
    ("ohne", "without"),
    ("aus", "from"),
)
SUBJUNCTIONS = (
    ("weil", "because"),
    ("obwohl", "although"),
    ("wenn", "when"),
    ("während", "while"),
    ("bevor", "before"),
    ("nachdem", "after"),
)
CONJUNCTIONS = (("und", "and"), ("aber", "but"), ("denn", "for"))
COMPLEMENTIZERS = {"dass": "that", "ob": "whether"}
QUESTION_WORDS = (("wo", "where"), ("wann", "when"), ("warum", "why"))
SUBJECT_PRONOUNS = (
    ("ich", "I"),
    ("er", "he"),
    ("sie", "she"),
    ("wir", "we"),
    ("sie", "they"),
)
OBJECT_PRONOUNS = (
    ("mich", "mir", "me"),
    ("ihn", "ihm", "him"),
    ("uns", "uns", "us"),
)
