"""Attributes after a noun of the demo grammar: genitives, relative clauses."""

from tools.demo_corpus import phrases
from tools.demo_corpus.chooser import Chooser
from tools.demo_corpus.german import (
    ACCUSATIVE,
    DATIVE,
    FEMININE,
    GENITIVE,
    MASCULINE,
    NOMINATIVE,
    PLURAL,
    RELATIVE,
)
from tools.demo_corpus.nouns import CITY_NAMES
from tools.demo_corpus.phrases import (
    PEOPLE,
    PLURAL_PERSON,
    THIRD,
    Phrase,
)
from tools.demo_corpus.planning import plan_clause

_OWNABLE = ("kin", "animal", "thing", "head", "device", "text", "garment")
_ADJUNCTS = ("genitive",) * 7 + ("relative",) * 9 + ("mit",) * 3 + ("aus",) * 2
_SUBJECT_FRAMES = (
    ("transitive",) * 4
    + ("intransitive",) * 3
    + ("dative",) * 2
    + ("copula", "ditransitive", "motion", "prepositional")
)
_ANIMAL_FRAMES = ("intransitive", "motion", "copula")
_WITH = (
    (DATIVE, "mit", "with"),
    (DATIVE, "mit", "with"),
    (ACCUSATIVE, "ohne", "without"),
)
_CARRIED = ("thing", "head", "animal", "garment", "drink")


def attributed_phrase(
    chooser: Chooser, kinds: tuple[str, ...], case: int, feminine: bool
) -> Phrase:
    """Makes a noun phrase with a genitive, a relative clause, *mit* or *aus*.

    `kinds` are the kinds of nouns to choose from, `case` is the case of the
    phrase, and `feminine` says whether a genitive may be feminine.
    """
    adjunct = chooser.pick(_ADJUNCTS)
    owned = tuple(kind for kind in kinds if kind in _OWNABLE)
    if adjunct == "genitive" and owned:
        phrase = phrases.noun_phrase(chooser, owned, case, owned=True)
        owner = phrases.noun_phrase(chooser, PEOPLE, GENITIVE)
        while owner.column == FEMININE and not feminine:
            owner = phrases.noun_phrase(chooser, PEOPLE, GENITIVE)
        _append(phrase, owner.german, ["of", *owner.english])
        return phrase
    phrase = phrases.noun_phrase(chooser, kinds, case)
    person = phrase.kind in PEOPLE
    if adjunct == "mit" and person:
        case, *words = chooser.pick(_WITH)
        other = phrases.noun_phrase(chooser, _CARRIED, case)
        _append(phrase, *phrases.prepositional(*words, other))
    elif adjunct == "aus" and person:
        german, english = chooser.pick(CITY_NAMES)
        _append(phrase, ["aus", german], ["from", english])
    else:
        german, english = relative_clause(chooser, phrase)
        _append(phrase, [",", *german, ","], english)
    return phrase


def _append(phrase, german, english):
    phrase.german = phrase.german + german
    phrase.english = phrase.english + english
    phrase.bare = False


def relative_clause(
    chooser: Chooser, antecedent: Phrase
) -> tuple[list[str], list[str]]:
    """Makes a relative clause: *der schläft*, *dem ich helfe*.

    The relative pronoun takes its gender and number from `antecedent`, and its
    case from its own clause. Returns the German words, without commas, and the
    English words.
    """
    kind = antecedent.kind
    person = kind in PEOPLE
    draw = chooser.pick(range(10))
    if draw < 5 or (draw > 6 and not person):
        if person or kind == "animal" or draw < 2:
            return _as_subject(chooser, antecedent, person)
        return _as_accusative(chooser, antecedent, person)
    if draw < 7:
        return _as_accusative(chooser, antecedent, person)
    if draw < 9:
        return _as_dative(chooser, antecedent)
    return _as_genitive(chooser, antecedent)


def _as_subject(chooser, antecedent, person):
    if person:
        frame = chooser.pick(_SUBJECT_FRAMES)
    elif antecedent.kind == "animal":
        frame = chooser.pick(_ANIMAL_FRAMES)
    else:
        frame = "copula"
    pronoun = Phrase(
        [RELATIVE[NOMINATIVE][antecedent.column]],
        ["who" if person else "which"],
        antecedent.kind,
        antecedent.column,
        antecedent.person,
    )
    # No names: "die Frau, die Anna sieht" does not tell who sees whom.
    clause = plan_clause(
        chooser,
        subject=pronoun,
        frame=frame,
        adverbial_chance=0.15,
        names=False,
    )
    return clause.subordinate()


def _as_accusative(chooser, antecedent, person):
    # Only the masculine "den" is marked as an object. Otherwise the subject is
    # a pronoun that can only be a subject.
    if antecedent.column == MASCULINE and chooser.chance(0.7):
        subject = phrases.noun_phrase(chooser, PEOPLE, NOMINATIVE, names=True)
    else:
        subject = phrases.subject_pronoun(chooser, sie=False)
    clause = plan_clause(
        chooser,
        subject=subject,
        frame="transitive",
        object_kind=antecedent.kind,
        omitted=ACCUSATIVE,
        adverbial_chance=0.15,
    )
    return clause.subordinate(
        [RELATIVE[ACCUSATIVE][antecedent.column]],
        ["whom" if person else "which"],
    )


def _as_dative(chooser, antecedent):
    subject = phrases.noun_phrase(chooser, PEOPLE, NOMINATIVE, names=True)
    if chooser.chance(0.4):
        subject = phrases.subject_pronoun(chooser)
    frame = chooser.pick(("dative", "dative", "ditransitive"))
    clause = plan_clause(
        chooser,
        subject=subject,
        frame=frame,
        omitted=DATIVE,
        adverbial_chance=0.15,
    )
    english = ["whom"] if frame == "dative" else ["to", "whom"]
    return clause.subordinate([RELATIVE[DATIVE][antecedent.column]], english)


def _as_genitive(chooser, antecedent):
    owned = phrases.noun_phrase(chooser, ("kin", "animal"), NOMINATIVE)
    noun = owned.german[-1]
    plural = owned.column == PLURAL
    subject = Phrase(
        [RELATIVE[GENITIVE][antecedent.column], noun],
        ["whose", owned.english[-1]],
        owned.kind,
        owned.column,
        PLURAL_PERSON if plural else THIRD,
    )
    frame = chooser.pick(("intransitive", "motion", "copula"))
    clause = plan_clause(
        chooser, subject=subject, frame=frame, adverbial_chance=0.15
    )
    return clause.subordinate()
