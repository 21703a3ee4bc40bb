"""Paired approximate randomization tests between rows of the table."""

import numpy as np

from keras_deepnmt.reranking.metric_counts import MetricCounts

NUM_TRIALS = 10_000
# That of sacreBLEU.
_SEED = 12345


def paired_randomization(
    counts: np.ndarray, plain_counts: np.ndarray
) -> tuple[float, float]:
    """Compares the BLEU of two systems by paired approximate randomization.

    Each trial swaps the translations of about half of the sentences (Riezler
    and Maxwell, 2005). It draws the same trials as sacreBLEU's test and counts
    the same differences, but needs only the counts that BLEU sums, not the
    texts.

    Args:
        counts: int array `(sentences, counts)`, of `MetricCounts("bleu")`, of
            the translations of a system.
        plain_counts: the same of the plain system.

    Returns:
        The difference from the plain system, and the two-sided p-value: how
        probable a larger difference, in either direction, would be if it were
        chance which system made which translation. Equal scores have the
        p-value 1.
    """
    bleu = MetricCounts("bleu").scores
    total = counts.sum(axis=0) + plain_counts.sum(axis=0)
    plain, other = (
        bleu(found.sum(axis=0, keepdims=True)).item()
        for found in (plain_counts, counts)
    )
    # Trials with a larger difference than the one seen count. If that is 0 and
    # all translations agree, there are none, and the p-value is the smallest
    # possible one.
    if plain == other:
        return 0.0, 1.0
    is_swapped = np.random.default_rng(_SEED).integers(
        2, size=(NUM_TRIALS, len(counts)), dtype=bool
    )
    # Products of float64 are exact here, and much faster than those of int64.
    one = is_swapped @ plain_counts.astype("float64")
    one += ~is_swapped @ counts.astype("float64")
    larger = np.abs(bleu(one) - bleu(total - one)) > abs(other - plain)
    return other - plain, (larger.sum().item() + 1) / (NUM_TRIALS + 1)
