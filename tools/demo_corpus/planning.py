"""Plans the content of a demo clause: verb, objects, adverbials."""

from collections.abc import Callable

from tools.demo_corpus import function_words, phrases
from tools.demo_corpus.chooser import Chooser
from tools.demo_corpus.clauses import Clause
from tools.demo_corpus.german import ACCUSATIVE, DATIVE, NOMINATIVE
from tools.demo_corpus.phrases import ANIMATE, PEOPLE, Phrase
from tools.demo_corpus.verbs import ANIMAL_VERBS, MODALS, VERBS

# An item that is listed more often is chosen more often.
TENSES = ("present",) * 10 + ("past",) * 6 + ("modal",) * 4
_FRAMES = (
    ("transitive",) * 9
    + ("intransitive",) * 5
    + ("copula",) * 2
    + ("dative",) * 3
    + ("ditransitive",) * 3
    + ("motion",) * 2
    + ("prepositional",) * 2
)
_COPULA_SUBJECTS = (
    PEOPLE,
    ANIMATE,
    ("thing", "head", "device", "text", "garment"),
    ("place",),
    ("food", "meal", "drink"),
)
TRANSITIVE_OF_KIND = {
    kind: tuple(verb for verb in VERBS["transitive"] if kind in verb.kinds)
    for verb in VERBS["transitive"]
    for kind in verb.kinds
}
_MANNER_FRAMES = ("intransitive", "transitive", "motion", "prepositional")

# Makes a noun phrase with an attribute from the kinds of nouns, the case, and
# whether a genitive may be feminine.
Attribute = Callable[[Chooser, tuple[str, ...], int, bool], Phrase]


def plan_clause(
    chooser: Chooser,
    *,
    subject: Phrase | None = None,
    frame: str | None = None,
    object_kind: str | None = None,
    omitted: int | None = None,
    tense: str | None = None,
    attribute: Attribute | None = None,
    adverbial_chance: float = 0.4,
    names: bool = True,
) -> Clause:
    """Chooses the words of a clause, which is not yet in order.

    What is not given is chosen at random.

    Args:
        chooser: Makes the random choices.
        subject: Its subject. Defaults to one that suits the verb.
        frame: Kind of verb, a key of `VERBS` or `"copula"`.
        object_kind: Kind of noun that a transitive verb must accept as object.
        omitted: Case of the object that a relative pronoun replaces.
        tense: `"present"`, `"past"` or `"modal"`.
        attribute: Makes a noun phrase with an attribute. Defaults to no
            attributes.
        adverbial_chance: Probability of each adverbial.
        names: Whether an object may be a person's name.
    """
    if frame is None:
        frame = chooser.pick(_FRAMES)
    if subject is None:
        subject = _subject(chooser, frame, attribute)
    clause = Clause(subject, tense or chooser.pick(TENSES))
    modal = chooser.pick(MODALS) if clause.tense == "modal" else None
    if frame == "copula":
        return _plan_copula(chooser, clause, modal, adverbial_chance)
    verb = _verb(chooser, frame, object_kind, subject)
    objects = _objects(
        chooser, verb, subject, omitted, attribute, names and subject.bare
    )
    negated = (
        chooser.chance(0.12)
        and subject.definite
        and all(phrase.definite for _, phrase in objects)
    )
    time = None
    if not negated and chooser.chance(adverbial_chance):
        time = chooser.pick(function_words.TIMES_OF_TENSE[clause.tense])
    manner = None
    if (
        not negated
        and frame in _MANNER_FRAMES
        and chooser.chance(adverbial_chance / 4)
    ):
        manner = chooser.pick(function_words.MANNERS)
    _arrange(
        chooser, clause, verb, objects, time, manner, negated, adverbial_chance
    )
    clause.conjugate(verb, modal, negated)
    return clause


def _subject(chooser, frame, attribute):
    if chooser.chance(0.16):
        return phrases.subject_pronoun(chooser)
    kinds = PEOPLE
    if frame == "copula":
        kinds = chooser.pick(_COPULA_SUBJECTS)
    elif frame in ANIMAL_VERBS:
        kinds = ANIMATE
    if chooser.chance(0.05) and kinds in (PEOPLE, ANIMATE):
        return phrases.coordinated_phrase(chooser, kinds)
    if attribute and chooser.chance(0.22):
        return attribute(
            chooser, kinds, NOMINATIVE, _allows_feminine_genitive(frame)
        )
    return phrases.noun_phrase(chooser, kinds, NOMINATIVE, names=True)


def _allows_feminine_genitive(frame):
    # "weil der Mann der Frau hilft": a feminine genitive could be read as a
    # dative object.
    return frame not in ("dative", "ditransitive")


def _verb(chooser, frame, object_kind, subject):
    if object_kind is not None and frame == "transitive":
        return chooser.pick(TRANSITIVE_OF_KIND[object_kind])
    if subject.kind == "animal" and frame in ANIMAL_VERBS:
        return chooser.pick(ANIMAL_VERBS[frame])
    return chooser.pick(VERBS[frame])


def _plan_copula(chooser, clause, modal, adverbial_chance):
    subject = clause.subject
    adjective = chooser.pick(function_words.ADJECTIVES_OF_KIND[subject.kind])
    negated = subject.definite and chooser.chance(0.12)
    time = None
    if not negated and chooser.chance(adverbial_chance):
        time = chooser.pick(function_words.TIMES_OF_TENSE[clause.tense])
        clause.add("time", time[0], None, front=True)
    if negated:
        clause.add("not", ["nicht"], None)
    clause.add("adjective", [adjective.german], [adjective.english])
    if time:
        clause.after.append(("time", time[1]))
    if modal and subject.kind not in ANIMATE:
        # Things take *werden* only: a table does not want to be red.
        modal = MODALS[-1]
    clause.conjugate_copula(modal, negated)
    return clause


def _objects(chooser, verb, subject, omitted, attribute, names):
    """Chooses the objects of the verb as (case, phrase), dative first."""
    objects = []
    if verb.frame in ("dative", "ditransitive") and omitted != DATIVE:
        kinds = ANIMATE if verb.frame == "dative" else PEOPLE
        objects.append((DATIVE, kinds))
    if verb.frame in ("transitive", "ditransitive") and omitted != ACCUSATIVE:
        objects.append((ACCUSATIVE, verb.kinds))
    if verb.frame == "prepositional":
        objects.append((verb.case, verb.kinds))
    # At most one attribute per clause, including that of the subject.
    may_have_attribute = attribute is not None and subject.bare
    chosen = []
    for case, kinds in objects:
        animate = kinds[0] == "person"
        # "ich sehe mich" would need another English pronoun.
        pronoun = animate and not verb.phrasal and not subject.pronoun
        if pronoun and chooser.chance(0.1):
            phrase = phrases.object_pronoun(chooser, case)
        elif may_have_attribute and chooser.chance(0.2):
            phrase = attribute(
                chooser, kinds, case, _allows_feminine_genitive(verb.frame)
            )
            may_have_attribute = False
        else:
            phrase = phrases.noun_phrase(chooser, kinds, case, names=names)
        chosen.append((case, phrase))
    return chosen


def _arrange(
    chooser, clause, verb, objects, time, manner, negated, adverbial_chance
):
    """Adds objects and adverbials in German and in English order."""
    if verb.frame == "prepositional":
        objects, governed = [], objects[0][1]
    for _, phrase in objects:
        if phrase.pronoun:
            clause.add("pronoun", phrase.german, None)
    if time:
        clause.add("time", time[0], None, front=True)
    for case, phrase in objects:
        if not phrase.pronoun:
            name = "dative" if case == DATIVE else "accusative"
            clause.add(name, phrase.german, None, front=phrase.marked)
    if manner:
        clause.add("manner", [manner[0]], None)
    if negated:
        clause.add("not", ["nicht"], None)
    for case, phrase in reversed(objects):
        to = ["to"] if case == DATIVE and verb.frame == "ditransitive" else []
        clause.after.append(("object", to + phrase.english))
    if verb.frame == "prepositional":
        german, _ = phrases.prepositional(verb.preposition, "", governed)
        clause.add("governed", german, governed.english)
    elif verb.frame == "clausal":
        clause.complementizer = verb.preposition
    elif verb.frame == "motion":
        clause.add("direction", *phrases.direction(chooser))
    last_is_bare = objects[-1][1].bare if objects else True
    if manner:
        clause.after.append(("manner", [manner[1]]))
    if (
        verb.frame in ("intransitive", "transitive")
        and last_is_bare
        and chooser.chance(adverbial_chance / 2)
    ):
        clause.add("place", *phrases.place(chooser), front=True)
    if time:
        clause.after.append(("time", time[1]))
