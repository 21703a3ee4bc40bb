"""Agreement of two groupings, and means over seeds with intervals."""

import collections
import math
import random
import statistics

# 0.975 quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def v_measure(classes, clusters):
    """Returns how well clusters agree with classes, whatever they are called.

    It is the harmonic mean of homogeneity h and completeness c (Rosenberg and
    Hirschberg, 2007), with entropies H:

        h = 1 - H(classes | clusters) / H(classes)
        c = 1 - H(clusters | classes) / H(clusters)

    where h or c is 1 if its denominator is 0. `classes` and `clusters` have one
    entry per item. The result is between 0 (independent groupings, or a single
    cluster) and 1 (the same grouping).
    """
    joint = _entropy(zip(classes, clusters, strict=True))
    of_classes, of_clusters = _entropy(classes), _entropy(clusters)
    shared = of_classes + of_clusters - joint
    homogeneity = shared / of_classes if of_classes else 1.0
    completeness = shared / of_clusters if of_clusters else 1.0
    if homogeneity + completeness == 0:
        return 0.0
    return 2 * homogeneity * completeness / (homogeneity + completeness)


def v_measure_by_chance(classes, clusters, seed=0, draws=200):
    """Returns the mean V-measure of the classes and shuffled clusters.

    It is above zero, because many small clusters agree a little with anything.
    """
    generator, shuffled = random.Random(seed), list(clusters)
    values = []
    for _ in range(draws):
        generator.shuffle(shuffled)
        values.append(v_measure(classes, shuffled))
    return statistics.fmean(values)


def mean_and_interval(values):
    """Returns the mean, and half the width of its 95 % interval.

    The interval is Student's, and `nan` for a single value. For more than ten
    values the quantile of ten is used, which is slightly too wide.
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
