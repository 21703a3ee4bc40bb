"""The list of all lexemes of the demo grammar."""

from typing import NamedTuple

from tools.demo_corpus import function_words, nouns, verbs
from tools.demo_corpus.verbs import MODALS


class Lexeme(NamedTuple):
    """An entry of the lexicon: German, English and the word's category."""

    german: str
    english: str
    category: str


def _lexemes():
    for kind in nouns.NOUNS.values():
        for noun in kind:
            yield Lexeme(noun.forms[0][0], noun.english[0], "noun")
    for german, english in nouns.COMPOUND_MODIFIERS:
        yield Lexeme(german, english, "modifier")
    for name in nouns.PERSON_NAMES:
        yield Lexeme(name, name, "name")
    for german, english in nouns.CITY_NAMES:
        yield Lexeme(german, english, "name")
    for frame in verbs.VERBS.values():
        for verb in frame:
            english = " ".join(verb.english_base)
            yield Lexeme(verb.infinitive, english, "verb")
    for modal in MODALS:
        english = modal.english_base or (modal.auxiliary,)
        yield Lexeme(modal.present[2], " ".join(english), "modal")
    yield Lexeme("sein", "be", "verb")
    for adjective in function_words.ADJECTIVES:
        yield Lexeme(adjective.german, adjective.english, "adjective")
    for word in (
        function_words.THE,
        function_words.A,
        function_words.THIS,
        function_words.EVERY,
        function_words.ALL,
        function_words.NO,
        function_words.MY,
        function_words.OUR,
        function_words.HIS,
        function_words.MANY,
        *function_words.NUMERALS,
    ):
        form = word.forms[0][
            3 if word in (function_words.ALL, function_words.MANY) else 0
        ].split("/")[0]
        yield Lexeme(form, word.english[0], "determiner")
    for german, english, _ in function_words.TIMES:
        yield Lexeme(german, english, "adverb")
    words_of_category = {
        "adverb": (*function_words.MANNERS, ("nicht", "not")),
        "preposition": function_words.PREPOSITIONS,
        "conjunction": (
            *function_words.SUBJUNCTIONS,
            *function_words.CONJUNCTIONS,
            *function_words.COMPLEMENTIZERS.items(),
        ),
        "question word": function_words.QUESTION_WORDS,
        "pronoun": function_words.SUBJECT_PRONOUNS,
    }
    for category, words in words_of_category.items():
        for german, english in words:
            yield Lexeme(german, english, category)


LEXICON: tuple[Lexeme, ...] = tuple(dict.fromkeys(_lexemes()))
