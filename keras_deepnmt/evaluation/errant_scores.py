"""Scores of corrections by type of error, with edits found by ERRANT."""

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.m2_files import AnnotatedSentence, Edit
from keras_deepnmt.evaluation.precision_recall import EditCounts
from keras_deepnmt.evaluation.scores import check_lengths

SPACY_MODEL = "en_core_web_sm"
# Edits whose type ERRANT does not know are not scored.
_UNKNOWN = "UNK"


@dataclass(frozen=True)
class ErrantScore(EditCounts):
    """Result of `errant_score`.

    Attributes:
        correct: Number of edits of the system that are gold edits.
        proposed: Number of edits of the system.
        gold: Number of gold edits.
        beta: Weight of recall relative to precision in `f_score`.
        by_type: The counts of each type of error, such as `R:VERB:SVA`.
    """

    by_type: Mapping[str, EditCounts] = field(default_factory=dict)


@functools.cache
def load_annotator(spacy_model: str = SPACY_MODEL) -> Any:
    """Loads ERRANT's annotator of English.

    `spacy_model` is the name or folder of an English model of spaCy.
    """
    try:
        import errant
        import spacy
    except ImportError as error:
        raise UserError(
            "ERRANT needs the package `errant`. Install it with "
            "`pip install keras_deepnmt[errant]`."
        ) from error
    try:
        nlp = spacy.load(spacy_model, disable=["ner"])
    except (OSError, ValueError) as error:
        raise UserError(
            f"spaCy cannot load the model {spacy_model}, which ERRANT needs. "
            f"Install it with `python -m spacy download {SPACY_MODEL}`, or "
            "name the folder of an English model."
        ) from error
    return errant.load("en", nlp)


def annotate_corrections(
    sources: Sequence[str],
    *corrections: Sequence[str | None],
    spacy_model: str = SPACY_MODEL,
) -> list[AnnotatedSentence]:
    """Finds the edits of corrected sentences and their types by ERRANT.

    ERRANT (Bryant et al., 2017) aligns source and correction by their words,
    lemmas and parts of speech, merges neighbouring changes by rules and names
    the type of each edit. The edits are those of its program
    `errant_parallel`. English only.

    Args:
        sources: Sentences, tokenized.
        *corrections: Corrections of them, tokenized alike: a list for each
            annotator or system, with `None` where there is none.
        spacy_model: Name or folder of an English model of spaCy, on whose
            version the types depend.

    Returns:
        The sentences, with the edits of each list of corrections.

    Raises:
        UserError: if the package `errant` or the model is not installed.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> (found,) = annotate_corrections(["It are late"], ["It is late"])
    >>> found.edits[0][0].error_type
    'R:VERB:SVA'

    Reference:
        - [Bryant et al., 2017](https://aclanthology.org/P17-1074/).
    """
    for lines in corrections:
        check_lengths(sources=sources, corrections=lines)
    annotator = load_annotator(spacy_model)
    sentences = []
    for source, *corrected in zip(sources, *corrections, strict=True):
        words = tuple(source.split())
        parsed = annotator.parse(" ".join(words)) if words else None
        edits = []
        for line in corrected:
            if line is None:
                continue
            line = " ".join(line.split())
            if parsed is None or line == " ".join(words):
                edits.append(())
                continue
            found = annotator.annotate(parsed, annotator.parse(line))
            edits.append(
                tuple(
                    Edit(
                        edit.o_start,
                        edit.o_end,
                        (" ".join(token.text for token in edit.c_toks),),
                        edit.type,
                    )
                    for edit in found
                )
            )
        sentences.append(AnnotatedSentence(words, tuple(edits)))
    return sentences


def errant_score(
    hypotheses: Sequence[str],
    gold: Sequence[AnnotatedSentence],
    beta: float = 0.5,
    spacy_model: str = SPACY_MODEL,
) -> ErrantScore:
    """Scores corrections by ERRANT, also by type of error.

    An edit of the system is correct if a gold edit replaces the same words by
    the same words. A correct edit counts for the type of the gold edit, another
    one for the type that ERRANT gives it. The counts are those of
    `errant_compare`: with several annotators, each sentence is scored by the
    one that gives the highest F-score of the sentences so far, rounded to four
    digits; of equal ones by the one with more correct, then fewer wrong, then
    fewer missing edits. Edits of the type `UNK` do not count.

    Differs from it: of several corrections of a gold edit any one is right.

    Args:
        hypotheses: Corrected sentences, tokenized as the source.
        gold: Source sentences with gold edits, of `read_m2` or, from
            references, of `annotate_corrections`.
        beta: Weight of recall relative to precision.
        spacy_model: As in `annotate_corrections`.

    Returns:
        The counts, of all edits and by type.

    Raises:
        UserError: if the package `errant` or the model is not installed.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> gold = annotate_corrections(["It are late"], ["It is late"])
    >>> errant_score(["It is late"], gold).by_type["R:VERB:SVA"].f_score
    1.0
    """
    check_lengths(hypotheses=hypotheses, gold=gold)
    sources = [" ".join(sentence.words) for sentence in gold]
    systems = annotate_corrections(sources, hypotheses, spacy_model=spacy_model)
    total = EditCounts(0, 0, 0, beta)
    # By type: correct, proposed and gold edits.
    by_type = defaultdict(lambda: EditCounts(0, 0, 0, beta))
    for system, sentence in zip(systems, gold, strict=True):
        found = []
        for edits in sentence.edits:
            counts = _compare(system.edits[0], edits)
            sums = total
            for numbers in counts.values():
                sums = sums.plus(*numbers)
            found.append((sums, counts))
        total, counts = max(found, key=lambda each: _preference(each[0]))
        for name, numbers in counts.items():
            by_type[name] = by_type[name].plus(*numbers)
    return ErrantScore(
        total.correct,
        total.proposed,
        total.gold,
        beta,
        dict(sorted(by_type.items())),
    )


def _preference(counts):
    """Sorts annotators as `errant_compare` does."""
    wrong = counts.proposed - counts.correct
    missing = counts.gold - counts.correct
    return round(counts.f_score, 4), counts.correct, -wrong, -missing


def _compare(system, gold):
    """Correct, proposed and gold edits by type."""
    proposed = defaultdict(list)
    for edit in system:
        if edit.error_type != _UNKNOWN:
            place = edit.start, edit.end, edit.corrections[0]
            proposed[place].append(edit.error_type)
    expected = defaultdict(list)
    for edit in gold:
        if edit.error_type != _UNKNOWN:
            places = [(edit.start, edit.end, text) for text in edit.corrections]
            place = next((p for p in places if p in proposed), places[0])
            expected[place].append(edit.error_type)
    correct, wrong, missing = Counter(), Counter(), Counter()
    for place, names in proposed.items():
        if place in expected:
            correct.update(expected[place])
        else:
            wrong.update(names)
    for place, names in expected.items():
        if place not in proposed:
            missing.update(names)
    return {
        name: (
            correct[name],
            correct[name] + wrong[name],
            correct[name] + missing[name],
        )
        for name in {**correct, **wrong, **missing}
    }
