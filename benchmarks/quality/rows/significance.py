"""Paired bootstrap tests between rows of the table."""

import numpy as np

from keras_deepnmt.reranking.metric_counts import MetricCounts

NUM_RESAMPLES = 1_000
# That of sacreBLEU.
_SEED = 12345


def paired_bootstrap(
    counts: np.ndarray, plain_counts: np.ndarray
) -> tuple[float, float]:
    """Compares the BLEU of two systems by the paired bootstrap test.

    It draws the same samples as sacreBLEU's test and counts the same
    differences, but needs only what BLEU adds up, not the texts.

    Args:
        counts: int array `(sentences, counts)`, of `MetricCounts("bleu")`, of
            the translations of a system.
        plain_counts: the same of the plain system.

    Returns:
        The difference from the plain system, and the p-value: how probable
        such a difference, in either direction, would be if the systems were
        equally good. Equal scores have the p-value 1.
    """
    bleu = MetricCounts("bleu").scores
    plain, other = (
        bleu(found.sum(axis=0, keepdims=True)).item()
        for found in (plain_counts, counts)
    )
    # A resample with a larger difference than the one seen counts. If that is
    # 0 and all translations agree there is none, and so the smallest possible
    # p-value.
    if plain == other:
        return 0.0, 1.0
    number = len(counts)
    samples = np.random.default_rng(_SEED).choice(
        number, size=(NUM_RESAMPLES, number), replace=True
    )
    # How often each sample has each sentence.
    times = np.stack([np.bincount(row, minlength=number) for row in samples])
    differences = np.abs(bleu(times @ counts) - bleu(times @ plain_counts))
    larger = differences - differences.mean() > abs(other - plain)
    return other - plain, (larger.sum().item() + 1) / (NUM_RESAMPLES + 1)
