"""Whole sentences of the demo grammar, built from clauses."""

from tools.demo_corpus import function_words
from tools.demo_corpus.attributes import attributed_phrase
from tools.demo_corpus.chooser import Chooser
from tools.demo_corpus.clauses import Clause
from tools.demo_corpus.planning import TENSES, plan_clause

# An item that is listed more often is chosen more often.
_SHAPES = (
    ("simple",) * 28
    + ("question",) * 5
    + ("shared",) * 3
    + ("joined",) * 6
    + ("subordinate",) * 6
    + ("opened",) * 4
    + ("reported",) * 5
    + ("long",) * 5
)

_SUBJUNCTIONS_WITHOUT = {
    excluded: tuple(
        item for item in function_words.SUBJUNCTIONS if item[0] != excluded
    )
    for excluded in ("wenn", "nachdem")
}


def make_sentence(chooser: Chooser) -> tuple[list[str], list[str], str]:
    """Makes a sentence.

    Returns the German words (commas count as words, and "der" carries its
    label), the English words, and the final punctuation mark.
    """
    shape = chooser.pick(_SHAPES)
    if shape == "simple":
        return (*_main_clause(chooser), ".")
    if shape == "question":
        return (*_question(chooser), "?")
    if shape == "shared":
        return (*_shared_subject(chooser), ".")
    if shape == "joined":
        return (
            *_join(_main_clause(chooser), chooser, _main_clause(chooser)),
            ".",
        )
    if shape == "subordinate":
        return (*_subordinate_last(chooser, _main_clause), ".")
    if shape == "opened":
        return (*_subordinate_first(chooser), ".")
    if shape == "reported":
        return (*_reported(chooser), ".")
    return (*_long_sentence(chooser), ".")


def _main_clause(chooser, tense=None):
    clause = plan_clause(chooser, tense=tense, attribute=attributed_phrase)
    return clause.main(_choose_front(chooser, clause))


def _choose_front(chooser, clause):
    if clause.fronts and chooser.chance(0.3):
        return chooser.pick(clause.fronts)
    return None


def _question(chooser):
    if chooser.chance(0.6):
        clause = plan_clause(chooser, attribute=attributed_phrase)
        return clause.question()
    german, english = chooser.pick(function_words.QUESTION_WORDS)
    asked = {"wo": "place", "wann": "time", "warum": ""}[german]
    frame = "intransitive" if german == "wo" else None
    clause = plan_clause(chooser, frame=frame, attribute=attributed_phrase)
    for words in (clause.middle, clause.after):
        words[:] = [item for item in words if item[0] != asked]
    return clause.question([german], [english])


def _shared_subject(chooser):
    first = plan_clause(
        chooser, attribute=attributed_phrase, adverbial_chance=0.2
    )
    second = _clause_with_same_subject(chooser, first)
    german, english = first.main()
    more_german, more_english = second.continued()
    return (
        [*german, "und", *more_german],
        [*english, "and", *more_english],
    )


def _clause_with_same_subject(chooser: Chooser, first: Clause) -> Clause:
    frame = "copula"
    if first.subject.kind in ("person", "kin"):
        frame = chooser.pick(("transitive", "intransitive", "dative"))
    elif first.subject.kind == "animal":
        frame = "intransitive"
    return plan_clause(
        chooser,
        subject=first.subject,
        frame=frame,
        tense=first.tense,
        adverbial_chance=0.2,
    )


def _join(left, chooser, right, conjunctions=function_words.CONJUNCTIONS):
    german, english = chooser.pick(conjunctions)
    comma = [] if german == "und" else [","]
    return (
        [*left[0], *comma, german, *right[0]],
        [*left[1], *comma, english, *right[1]],
    )


def _subordinate(chooser, main_tense):
    # Both clauses are in the past, or neither is. With a single past event
    # "wenn" would be "als", and "nachdem" needs a past event.
    if main_tense == "past":
        tense, excluded = "past", "wenn"
    else:
        tense = chooser.pick(("present", "present", "modal"))
        excluded = "nachdem"
    german, english = chooser.pick(_SUBJUNCTIONS_WITHOUT[excluded])
    clause = plan_clause(
        chooser,
        tense=tense,
        attribute=attributed_phrase,
        adverbial_chance=0.25,
    )
    return clause.subordinate([german], [english])


def _subordinate_last(chooser, make_main):
    tense = chooser.pick(TENSES)
    main = make_main(chooser, tense)
    german, english = _subordinate(chooser, tense)
    return [*main[0], ",", *german], [*main[1], *english]


def _subordinate_first(chooser):
    clause = plan_clause(
        chooser, attribute=attributed_phrase, adverbial_chance=0.25
    )
    german, english = _subordinate(chooser, clause.tense)
    # The subordinate clause takes the first position, the verb the second.
    main_german, _ = clause.question()
    _, main_english = clause.main()
    return (
        [*german, ",", *main_german],
        [*english, ",", *main_english],
    )


def _reported(chooser, tense=None):
    clause = plan_clause(
        chooser,
        tense=tense,
        frame="clausal",
        attribute=attributed_phrase,
        adverbial_chance=0.2,
    )
    german, english = clause.main(_choose_front(chooser, clause))
    return _add_object_clause(chooser, clause, german, english)


def _add_object_clause(chooser, clause, german, english):
    complementizer = clause.complementizer
    content = plan_clause(
        chooser, attribute=attributed_phrase, adverbial_chance=0.3
    )
    more_german, more_english = content.subordinate(
        [complementizer], [function_words.COMPLEMENTIZERS[complementizer]]
    )
    return [*german, ",", *more_german], [*english, *more_english]


def _long_sentence(chooser):
    parts = chooser.pick((_subordinate_first, _reported, _main_clause))(chooser)
    for _ in range(chooser.pick((0, 0, 1, 2))):
        more = chooser.pick((_main_clause, _main_clause, _reported))(chooser)
        parts = _join(parts, chooser, more, function_words.CONJUNCTIONS[:2])
    last = chooser.pick((_main_clause, _main_clause, _reported))
    more = (
        _subordinate_last(chooser, last)
        if chooser.chance(0.6)
        else last(chooser)
    )
    return _join(parts, chooser, more, function_words.CONJUNCTIONS[:2])
