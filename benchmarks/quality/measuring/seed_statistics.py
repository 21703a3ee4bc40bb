"""Agreement of two groupings, and means over few seeds with their intervals."""

import collections
import math
import random
import statistics

# Quantiles 0.975 of Student's distribution for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def v_measure(classes, clusters):
    """Tells how well clusters agree with classes, whatever they are called.

    The harmonic mean of homogeneity h and completeness c (Rosenberg and
    Hirschberg, 2007), with entropies H:

        h = 1 - H(classes | clusters) / H(classes)
        c = 1 - H(clusters | classes) / H(clusters)

    where a grouping of one group has h or c of 1.

    Args:
        classes: the class of each item.
        clusters: the cluster of each item, as many.

    Returns:
        Float from 0 (independent, or one cluster) to 1 (the same grouping).
    """
    both = _entropy(zip(classes, clusters, strict=True))
    of_classes, of_clusters = _entropy(classes), _entropy(clusters)
    shared = of_classes + of_clusters - both
    homogeneity = shared / of_classes if of_classes else 1.0
    completeness = shared / of_clusters if of_clusters else 1.0
    if homogeneity + completeness == 0:
        return 0.0
    return 2 * homogeneity * completeness / (homogeneity + completeness)


def v_measure_by_chance(classes, clusters, seed=0, draws=200):
    """Gives the mean agreement of clusters of the same sizes, drawn blindly.

    Args:
        classes: the class of each item.
        clusters: the cluster of each item, which are shuffled.
        seed: of the shuffles.
        draws: how many shuffles.

    Returns:
        Float. Above zero: many small clusters agree with anything a little.
    """
    source, shuffled = random.Random(seed), list(clusters)
    found = []
    for _ in range(draws):
        source.shuffle(shuffled)
        found.append(v_measure(classes, shuffled))
    return statistics.fmean(found)


def mean_and_interval(values):
    """Gives the mean, and half the width of its 95 % interval.

    Args:
        values: list of floats, one a seed.

    Returns:
        Tuple of floats, by Student's t; the second is `nan` for one value.
        Beyond ten values the interval is that of ten, a little too wide.
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan
    quantile = _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1]
    deviation = statistics.stdev(values)
    return mean, quantile * deviation / math.sqrt(len(values))


def _entropy(items):
    counts = collections.Counter(items)
    total = counts.total()
    return -sum(
        n / total * math.log(n / total) for n in counts.values() if n < total
    )
