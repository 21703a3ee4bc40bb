"""Noun and prepositional phrases of the demo grammar, in German and English.

The English words depend on the German words only: that makes the translation
learnable, and every difference from it an error.
"""

from tools.demo_corpus import function_words
from tools.demo_corpus.chooser import Chooser
from tools.demo_corpus.english import article
from tools.demo_corpus.german import (
    ACCUSATIVE,
    ADJECTIVE_ENDINGS,
    DATIVE,
    GENITIVE,
    LABEL_MARK,
    MASCULINE,
    NOMINATIVE,
    PLURAL,
)
from tools.demo_corpus.nouns import (
    CITY_NAMES,
    COMPOUNDS,
    NOUNS,
    PERSON_NAMES,
)

# Index of a verb form, by the person and number of the subject.
FIRST, THIRD, PLURAL_PERSON = range(3)
PEOPLE = ("person", "kin")
ANIMATE = ("person", "kin", "animal")

# A determiner that is listed more often is chosen more often.
_SINGULAR = (
    (function_words.THE,) * 12
    + (function_words.A,) * 4
    + (
        function_words.THIS,
        function_words.EVERY,
        function_words.MY,
        function_words.OUR,
        function_words.HIS,
    )
    + (function_words.NO,)
)
_PLURAL = (
    (function_words.THE,) * 6
    + (function_words.NONE,) * 3
    + function_words.NUMERALS
    + (function_words.MANY, function_words.ALL, function_words.THESE)
    + (
        function_words.MY,
        function_words.OUR,
        function_words.HIS,
        function_words.NO,
    )
)
_MASS = (
    (function_words.NONE,) * 3
    + (function_words.THE,) * 2
    + (function_words.MY,)
)
_GENITIVE = (function_words.THE,) * 6 + (
    function_words.THIS,
    function_words.MY,
    function_words.A,
)
# The determiners of a noun with a genitive: "my friend of the king" would be
# odd in both languages.
OWNED = (function_words.THE, function_words.THE, function_words.A)
_OWNED_PLURAL = (function_words.THE,)

_CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}


class Phrase:
    """A noun phrase: its words, and the properties that other words depend on.

    Attributes:
        german: list of str, its words.
        english: list of str, its words.
        kind: str, the kind of its head noun.
        column: int, gender, or `PLURAL`.
        person: int, the index of the verb form that agrees with it.
        definite: bool, whether it can be used with *nicht*.
        marked: bool, whether its words show its case, so that it may come
            before the verb although it is an object.
        pronoun: bool.
        bare: bool, whether it has no attribute.
    """

    __slots__ = (
        "german",
        "english",
        "kind",
        "column",
        "person",
        "definite",
        "marked",
        "pronoun",
        "bare",
    )

    def __init__(
        self,
        german,
        english,
        kind="person",
        column=MASCULINE,
        person=THIRD,
        definite=True,
        marked=False,
        pronoun=False,
    ):
        self.german = german
        self.english = english
        self.kind = kind
        self.column = column
        self.person = person
        self.definite = definite
        self.marked = marked
        self.pronoun = pronoun
        self.bare = True


_PLURAL_CHANCE = {kind: 0.25 for kind in NOUNS} | {"place": 0.0}
_NOUNS_OF_KINDS: dict[tuple[str, ...], tuple] = {}


def _nouns_of(kinds):
    if kinds not in _NOUNS_OF_KINDS:
        _NOUNS_OF_KINDS[kinds] = tuple(
            noun for kind in kinds for noun in NOUNS[kind]
        )
    return _NOUNS_OF_KINDS[kinds]


def noun_phrase(
    chooser: Chooser,
    kinds: tuple[str, ...],
    case: int,
    *,
    owned: bool = False,
    names: bool = False,
) -> Phrase:
    """Makes a noun phrase: determiner, sometimes an adjective, noun.

    `kinds` are the kinds of nouns to choose from, `case` is the case of the
    phrase. `owned` says whether a genitive will follow, `names` whether it may
    be a person's name.
    """
    if names and kinds[0] == "person" and chooser.chance(0.1):
        name = chooser.pick(PERSON_NAMES)
        return Phrase([name], [name])
    noun = chooser.pick(_nouns_of(kinds))
    if noun.kind == "head" and chooser.chance(0.5):
        noun = chooser.pick(COMPOUNDS)
    # Places have no plural: each would occur in very few sentences.
    plural = noun.countable and chooser.chance(_PLURAL_CHANCE[noun.kind])
    column = PLURAL if plural else noun.column
    if owned:
        determiner = chooser.pick(_OWNED_PLURAL if plural else OWNED)
    elif case == GENITIVE:
        determiner = function_words.THE if plural else chooser.pick(_GENITIVE)
    elif not noun.countable:
        determiner = chooser.pick(_MASS)
    else:
        determiner = chooser.pick(_PLURAL if plural else _SINGULAR)
    return _assemble(chooser, noun, case, column, determiner)


def _assemble(chooser, noun, case, column, determiner):
    plural = column == PLURAL
    german = [determiner.forms[case][column]]
    english = [noun.english[plural]]
    if chooser.chance(0.28):
        adjective = chooser.pick(function_words.ADJECTIVES_OF_KIND[noun.kind])
        german.append(adjective_form(adjective, determiner, case, column))
        english.insert(0, adjective.english)
    german.append(noun.forms[case][plural])
    if determiner is function_words.NONE:
        del german[0]
    elif determiner is function_words.A:
        english.insert(0, article(english[0]))
    else:
        english[:0] = determiner.english
    case_is_marked = (
        case == ACCUSATIVE and column == MASCULINE
    ) or case == DATIVE
    return Phrase(
        german,
        english,
        noun.kind,
        column,
        PLURAL_PERSON if plural else THIRD,
        determiner.definite,
        case_is_marked and determiner.paradigm != "strong",
    )


def adjective_form(adjective, determiner, case: int, column: int) -> str:
    """Returns the adjective with the ending it has after the determiner."""
    ending = ADJECTIVE_ENDINGS[determiner.paradigm][case][column]
    return adjective.forms[ending]


def subject_pronoun(chooser: Chooser, sie: bool = True) -> Phrase:
    """Makes a personal pronoun in the nominative; `sie=False` excludes *sie*.

    *sie* is "she" with a singular verb and "they" with a plural one.
    """
    row = chooser.pick((0, 1, 2, 3, 4) if sie else (0, 1, 3))
    german, english = function_words.SUBJECT_PRONOUNS[row]
    person = (FIRST, THIRD, THIRD, PLURAL_PERSON, PLURAL_PERSON)[row]
    return Phrase([german], [english], person=person, pronoun=True)


def object_pronoun(chooser: Chooser, case: int) -> Phrase:
    """Makes a personal pronoun in the accusative or dative."""
    accusative, dative, english = chooser.pick(function_words.OBJECT_PRONOUNS)
    german = dative if case == DATIVE else accusative
    return Phrase([german], [english], pronoun=True)


def coordinated_phrase(chooser: Chooser, kinds: tuple[str, ...]) -> Phrase:
    """Makes a plural phrase of two noun phrases joined by *und*."""
    left = noun_phrase(chooser, kinds, NOMINATIVE, names=True)
    right = noun_phrase(chooser, kinds, NOMINATIVE, names=True)
    both = Phrase(
        [*left.german, "und", *right.german],
        [*left.english, "and", *right.english],
        "animal" if "animal" in (left.kind, right.kind) else left.kind,
        PLURAL,
        PLURAL_PERSON,
        left.definite and right.definite,
    )
    both.bare = False
    return both


def prepositional(
    preposition: str, english: str, phrase: Phrase
) -> tuple[list[str], list[str]]:
    """Puts a preposition before a phrase, contracting *in dem* to *im*."""
    german = phrase.german
    article_word = german[0].partition(LABEL_MARK)[0]
    contracted = _CONTRACTED.get((preposition, article_word))
    german = [contracted or preposition, *german[1 if contracted else 0 :]]
    return german, [*english.split(), *phrase.english]


def place(chooser: Chooser) -> tuple[list[str], list[str]]:
    """Makes an adverbial of place: *im Park*, *neben der alten Schule*."""
    if chooser.chance(0.6):
        phrase = noun_phrase(chooser, ("place",), DATIVE)
        return prepositional("in", "in", phrase)
    if chooser.chance(0.4):
        german, english = chooser.pick((("auf", "on"), ("unter", "under")))
        return prepositional(
            german, english, noun_phrase(chooser, ("head",), DATIVE)
        )
    german, english = chooser.pick(function_words.PREPOSITIONS[1:4])
    phrase = noun_phrase(chooser, ("place", "head"), DATIVE)
    return prepositional(german, english, phrase)


def direction(chooser: Chooser) -> tuple[list[str], list[str]]:
    """Makes an adverbial of direction: *in den Park*, *nach Wien*."""
    if chooser.chance(0.2):
        german, english = chooser.pick(CITY_NAMES)
        return ["nach", german], ["to", english]
    if chooser.chance(0.25):
        phrase = noun_phrase(chooser, PEOPLE, DATIVE)
        return prepositional("zu", "to", phrase)
    phrase = noun_phrase(chooser, ("place",), ACCUSATIVE)
    return prepositional("in", "into", phrase)
