"""GLEU of corrected sentences, by source and references."""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.evaluation.p_values import SEED
from keras_deepnmt.evaluation.scores import (
    Score,
    check_lengths,
    reference_sets,
)

_ORDER = 4
_ITERATIONS = 500
# The seed of iteration j is j times this, as in the authors' program.
_SEED_STEP = 101
SIGNATURE = "ngrams:4|refs:sampled|iterations:500|case:mixed|tok:none"


def corpus_gleu(
    hypotheses: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    more_references: Sequence[Sequence[str]] = (),
    num_resamples: int = 1,
) -> Score:
    """Scores corrections by GLEU (Napoles et al., 2015, revised 2016).

    With the n-grams of a hypothesis H, a reference R and the source S, each
    with its count, the precision of order n is

        p_n = max(sum |H & R| - sum |H & (S - R)|, 0) / sum |H|,

    where S - R are the n-grams of the source that the reference does not have
    at all: keeping a mistake costs what a correct n-gram brings. Over all
    sentences, with r words of the references and c of the hypotheses,

        GLEU = 100 exp(min(0, 1 - r / c) + (log p_1 + ... + log p_4) / 4),

    with numerators and denominators summed, and 0 if one of the sums is 0. In
    each of 500 iterations one reference of each sentence is drawn, and the
    score is the mean. Seeds and draws are those of the authors' program in
    Python 3 (`eval/gleu.py` of keisks/jfleg, commit `ee06ff8`), so the score
    is the same; with one reference all iterations are equal. Words are what
    stands between blanks, and case counts.

    Differs from that program: an empty line is not a reference; another one of
    the sentence takes its place. The interval is that of a bootstrap over
    sentences, with each sentence's counts averaged over its references; the
    authors' interval is that of the draws of references.

    Args:
        hypotheses: Corrected sentences, tokenized.
        sources: The sentences that were corrected, tokenized alike.
        references: One reference for each sentence.
        more_references: Further references, as in `corpus_scores`.
        num_resamples: Number of bootstrap samples for the 95 % confidence
            interval. With 1 there is none.

    Returns:
        The score, in points 0-100.

    Raises:
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> source, reference = "He go to school .", "He goes to school ."
    >>> [
    ...     round(corpus_gleu([line], [source], [reference]).value)
    ...     for line in (source, reference)
    ... ]
    [0, 100]

    References:
        - [Napoles et al., 2015](https://aclanthology.org/P15-2097/).
        - [Napoles et al., 2016](https://arxiv.org/abs/1605.02592).
    """
    found = _counts_by_reference(
        hypotheses, sources, references, more_references
    )
    number = 1 + len(more_references)
    # Another reference takes the place of an empty one.
    counts = np.array(
        [[of[place % len(of)] for place in range(number)] for of in found]
    )
    rows = np.arange(len(counts))
    sums = []
    for iteration in range(_ITERATIONS if number > 1 else 1):
        draw = random.Random(iteration * _SEED_STEP)
        chosen = [draw.randint(0, number - 1) for _ in rows]
        sums.append(counts[rows, chosen].sum(axis=0))
    value = float(gleu_of_sums(np.array(sums)).mean())
    interval = None
    if num_resamples > 1:
        interval = _interval(_means(found), num_resamples)
    return Score(value, f"nrefs:{number}|{SIGNATURE}", interval)


def sentence_gleu(
    hypotheses: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    more_references: Sequence[Sequence[str]] = (),
) -> list[float]:
    """Scores each sentence by GLEU, the mean over its references.

    As in the authors' program, each count of a sentence and a reference that
    is 0 is taken for 1.

    Args:
        hypotheses: As in `corpus_gleu`, as are the others.
        sources: The sentences that were corrected.
        references: One reference for each sentence.
        more_references: Further references.

    Returns:
        One score for each sentence, in points 0-100.

    Raises:
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> sentence_gleu(["a b c d e"], ["a c d e"], ["a b c d e"])
    [100.0]
    """
    return [
        float(gleu_of_sums(np.where(counts == 0, 1, counts)).mean())
        for counts in _counts_by_reference(
            hypotheses, sources, references, more_references
        )
    ]


def gleu_counts(
    hypotheses: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    more_references: Sequence[Sequence[str]] = (),
) -> np.ndarray:
    """What GLEU sums: `(sentences, counts)`, averaged over the references.

    The counts are two lengths, and the numerator and denominator of each order.
    """
    return _means(
        _counts_by_reference(hypotheses, sources, references, more_references)
    )


def _means(found):
    """The counts of each sentence, averaged over its references."""
    return np.array([counts.mean(axis=0) for counts in found])


def gleu_of_sums(sums: np.ndarray) -> np.ndarray:
    """Computes GLEU, 0 to 100, of rows of sums `(rows, counts)`."""
    length, reference_length = sums[:, :2].T
    is_defined = (sums > 0).all(axis=1)
    safe = np.where(is_defined[:, None], sums, 1)
    precision = np.log(safe[:, 2::2] / safe[:, 3::2]).mean(axis=1)
    brevity = np.minimum(0, 1 - reference_length / np.maximum(length, 1))
    return np.where(is_defined, 100 * np.exp(brevity + precision), 0.0)


def _counts_by_reference(hypotheses, sources, references, more_references):
    """For each sentence a float64 array `(references, counts)`.

    An empty line is not a reference, so that sentences may have fewer of them
    than others.
    """
    check_lengths(hypotheses=hypotheses, sources=sources, references=references)
    sets = reference_sets(references, more_references)
    return [
        np.array(_sentence_counts(hypothesis, source, of_sentence), "float64")
        for hypothesis, source, *of_sentence in zip(
            hypotheses, sources, *sets, strict=True
        )
    ]


def _sentence_counts(hypothesis, source, references):
    given = [line for line in references if line is not None]
    words = hypothesis.split()
    ours, kept = _ngrams(words), _ngrams(source.split())
    rows = []
    for line in given:
        expected = line.split()
        row = [len(words), len(expected)]
        for order, theirs in enumerate(_ngrams(expected)):
            wrong = Counter(
                {
                    ngram: count
                    for ngram, count in kept[order].items()
                    if ngram not in theirs
                }
            )
            right = (ours[order] & theirs).total()
            row += [
                max(right - (ours[order] & wrong).total(), 0),
                max(len(words) - order, 0),
            ]
        rows.append(row)
    return rows


def _ngrams(words):
    """The n-grams of each order, with their counts."""
    return [
        Counter(zip(*(words[start:] for start in range(order)), strict=False))
        for order in range(1, _ORDER + 1)
    ]


def _interval(counts, num_resamples):
    """Half of what is between the outer 2.5 % of samples of sentences."""
    draw = np.random.default_rng(SEED)
    size = len(counts)
    scores = np.sort(
        gleu_of_sums(
            np.array(
                [
                    counts[draw.integers(size, size=size)].sum(axis=0)
                    for _ in range(num_resamples)
                ]
            )
        )
    )
    outer = num_resamples // 40
    return float(scores[-1 - outer] - scores[outer]) / 2
