"""Tells whether two systems that translated the same text differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from keras_deepnmt.evaluation.gleu_scores import (
    corpus_gleu,
    gleu_counts,
    gleu_of_sums,
)
from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.evaluation.p_values import (
    EQUAL,
    SEED,
    bootstrap_p_value,
    randomization_p_value,
)
from keras_deepnmt.evaluation.scores import (
    METRICS,
    check_lengths,
    make_metrics,
    reference_sets,
)


@dataclass(frozen=True)
class Comparison:
    """How the score of a system differs from that of a baseline.

    Attributes:
        difference: Score of the system minus that of the baseline, in the
            unit of `Score.value`. TER is better if it is lower.
        bootstrap_p_value: p-value of the paired bootstrap test
            (Koehn, 2004): for large differences about half of the other one,
            and never above about 0.45.
        randomization_p_value: p-value of the paired approximate randomization
            test (Riezler and Maxwell, 2005). Where the two disagree, read this
            one; see `compare_systems`.
    """

    difference: float
    bootstrap_p_value: float
    randomization_p_value: float


@dataclass(frozen=True)
class SignTest:
    """Result of `sign_test`.

    Attributes:
        better: Number of sentences that raise the baseline's BLEU if the
            system's translation replaces the baseline's.
        worse: Number of sentences that lower it.
        equal: Number of sentences that leave it as it is.
        p_value: How probable a split of `better` and `worse` that is at least
            as uneven would be if both were equally likely (two-sided).
    """

    better: int
    worse: int
    equal: int
    p_value: float


def compare_systems(
    system: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = METRICS,
    tokenize: str | None = None,
    lowercase: bool = False,
    num_resamples: int = 1_000,
    num_trials: int = 10_000,
    more_references: Sequence[Sequence[str]] = (),
    seed: int = SEED,
) -> dict[str, Comparison]:
    """Compares a system with a baseline by two paired tests.

    The p-value of the approximate randomization test (Riezler and Maxwell,
    2005) is the probability of a difference at least as large, in either
    direction, if the systems were equally good. It is exact, of all ways to
    swap the translations of sentences, if there are at most `num_trials`; and
    otherwise, with `c` of `n` random ways that have such a difference,

        p = (c + 1) / (n + 1).

    That of the bootstrap test (Koehn, 2004) is, as sacreBLEU defines it,

        P(|D*| - mean |D*| >= |D|)

    with the difference D and those of the samples, D*. For large differences
    it is about the probability of one direction alone, half of the other
    p-value. It is never above about 0.45, also for systems that hardly differ,
    and too small if only a few sentences differ. Where the tests disagree, read
    the randomization test.

    The smallest possible p-value is 1 / (number of samples + 1). Systems with
    equal scores have the p-value 1 in both tests, and so has a single sentence.

    Both count what sacreBLEU sums over sentences. Differs from its paired
    tests: ties count. sacreBLEU's randomization test counts only larger
    differences, and gives two systems of which one sentence differs the
    smallest possible p-value.

    Args:
        system: Translations of the system.
        baseline: Translations of the same sentences by the baseline.
        references: One reference for each sentence.
        metrics: As in `corpus_scores`.
        tokenize: sacreBLEU tokenizer for BLEU. Defaults to that of the
            references' script, as in `corpus_scores`.
        lowercase: Whether BLEU and chrF ignore case.
        num_resamples: Number of samples of the bootstrap test.
        num_trials: Number of samples of the approximate randomization test.
        more_references: Further references, as in `corpus_scores`.
        seed: Seed of the samples of both tests. Defaults to sacreBLEU's.

    Returns:
        One `Comparison` for each metric.

    Raises:
        UserError: if a metric or tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> references = ["a b c d e", "f g h i j", "k l m n o"] * 20
    >>> system = ["a b c d x", "f g h i j", "k l m n o"] * 20
    >>> baseline = ["a b c d x", "f g h y j", "k l z n o"] * 20
    >>> bleu = compare_systems(system, baseline, references, ["bleu"])["bleu"]
    >>> bleu.difference > 20, bleu.bootstrap_p_value < 0.01
    (True, True)
    """
    check_lengths(system=system, baseline=baseline, references=references)
    sets = reference_sets(references, more_references)
    # Raises the error for a wrong metric before any is counted.
    counters = {
        name: MetricCounts(name, tokenize, lowercase, references)
        for name in make_metrics(metrics, tokenize, lowercase, references)
    }
    comparisons = {}
    for name, counter in counters.items():
        counts = [
            counter.of_sentences(side, sets) for side in (system, baseline)
        ]
        comparisons[name] = _compare(
            counts, counter.scores, num_resamples, num_trials, seed
        )
    return comparisons


def compare_sentence_scores(
    system: Sequence[float],
    baseline: Sequence[float],
    num_resamples: int = 1_000,
    num_trials: int = 10_000,
    seed: int = SEED,
) -> Comparison:
    """Compares means of sentence scores, such as COMET's, by both paired tests.

    Args:
        system: The score of each sentence, of the system.
        baseline: The same of the baseline.
        num_resamples: As in `compare_systems`, as are the others.
        num_trials: Number of samples of the approximate randomization test.
        seed: Seed of the samples of both tests.

    Raises:
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> found = compare_sentence_scores([80.0, 91.0], [82.0, 83.0])
    >>> found.difference, found.randomization_p_value
    (3.0, 1.0)
    """
    check_lengths(system=system, baseline=baseline)
    counts = [np.array(side, "float64")[:, None] for side in (system, baseline)]

    def mean(sums):
        return sums[:, 0] / len(system)

    return _compare(counts, mean, num_resamples, num_trials, seed)


def compare_gleu(
    system: Sequence[str],
    baseline: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    more_references: Sequence[Sequence[str]] = (),
    num_resamples: int = 1_000,
    num_trials: int = 10_000,
    seed: int = SEED,
) -> Comparison:
    """Compares GLEU of two systems by both paired tests.

    The difference is that of `corpus_gleu`. The tests sum the counts of each
    sentence averaged over its references, where `corpus_gleu` draws one.

    Args:
        system: As in `compare_systems`, as are the others.
        baseline: Corrections of the same sentences by the baseline.
        sources: The sentences that were corrected.
        references: One reference for each sentence.
        more_references: Further references.
        num_resamples: Number of samples of the bootstrap test.
        num_trials: Number of samples of the approximate randomization test.
        seed: Seed of the samples of both tests.

    Raises:
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> source, good = ["a b c d e"] * 20, ["a b c d f"] * 20
    >>> found = compare_gleu(good, source, source, good)
    >>> found.difference, found.randomization_p_value < 0.01
    (100.0, True)
    """
    texts = sources, references, more_references
    compared = _compare(
        [gleu_counts(side, *texts) for side in (system, baseline)],
        gleu_of_sums,
        num_resamples,
        num_trials,
        seed,
    )
    one, other = (
        corpus_gleu(side, *texts).value for side in (system, baseline)
    )
    return replace(compared, difference=one - other)


def sign_test(
    system: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    tokenize: str | None = None,
    lowercase: bool = False,
    more_references: Sequence[Sequence[str]] = (),
) -> SignTest:
    """Compares BLEU of two systems by the sign test of Collins et al. (2005).

    For each sentence, the baseline's translation is replaced by the system's,
    in the baseline's whole output. The sentence counts as better if BLEU
    rises, and as worse if it falls. With `n` such sentences, of which `k` are
    on the smaller side,

        p = min(1, 2 sum_{i=0}^{k} C(n, i) / 2^n).

    Dou et al. (2018) report this test.

    Args:
        system: Translations of the system.
        baseline: Translations of the same sentences by the baseline.
        references: One reference for each sentence.
        tokenize: sacreBLEU tokenizer. Defaults to that of the references'
            script, as in `corpus_scores`.
        lowercase: Whether case is ignored.
        more_references: Further references, as in `corpus_scores`.

    Returns:
        The counts and the p-value.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> references = ["a b c d e", "f g h i j", "k l m n o"]
    >>> system = ["a b c d e", "f g h i j", "k l m n o"]
    >>> baseline = ["a b c d e", "f g h y j", "k l z n o"]
    >>> sign_test(system, baseline, references)
    SignTest(better=2, worse=0, equal=1, p_value=0.5)
    """
    check_lengths(system=system, baseline=baseline, references=references)
    counter = MetricCounts("bleu", tokenize, lowercase, references)
    sets = reference_sets(references, more_references)
    new, old = (counter.of_sentences(side, sets) for side in (system, baseline))
    total = old.sum(axis=0)
    changes = counter.scores(total + new - old) - counter.scores(total[None])
    better, worse = (int((c > EQUAL).sum()) for c in (changes, -changes))
    return SignTest(
        better, worse, len(old) - better - worse, _binomial(better, worse)
    )


def _compare(counts, scores, num_resamples, num_trials, seed):
    """Compares by the counts of both systems and the scores of their sums."""
    one, other = (scores(of.sum(axis=0)[None])[0] for of in counts)
    return Comparison(
        float(one - other),
        bootstrap_p_value(*counts, scores, num_resamples, seed),
        randomization_p_value(*counts, scores, num_trials, seed),
    )


def _binomial(better, worse):
    """Two-sided p-value of the counts, if both are equally likely."""
    number, smaller = better + worse, min(better, worse)
    tail = sum(math.comb(number, i) for i in range(smaller + 1))
    return min(1.0, 2 * tail / 2**number)
