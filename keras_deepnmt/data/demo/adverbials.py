"""Prepositional phrases of the demo grammar: place, direction."""

from keras_deepnmt.data.demo import small_words
from keras_deepnmt.data.demo.chance import Chooser
from keras_deepnmt.data.demo.german import ACCUSATIVE, DATIVE, LABEL_MARK
from keras_deepnmt.data.demo.noun_tables import CITY_NAMES
from keras_deepnmt.data.demo.phrases import PEOPLE, Phrase, noun_phrase

_CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}


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
    german, english = chooser.pick(small_words.PREPOSITIONS[1:4])
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
