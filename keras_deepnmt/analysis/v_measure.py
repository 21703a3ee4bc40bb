"""Agreement of roles with gold labels, whatever the roles are called."""

import collections
import math
import random
import statistics
from collections.abc import Hashable, Sequence


def v_measure(
    classes: Sequence[Hashable], clusters: Sequence[Hashable]
) -> float:
    """Computes how well clusters agree with classes, whatever their names.

    It is the harmonic mean of homogeneity h and completeness c (Rosenberg and
    Hirschberg, 2007), with entropies H:

        h = 1 - H(classes | clusters) / H(classes)
        c = 1 - H(clusters | classes) / H(clusters)

    where h or c is 1 if its denominator is 0.

    Args:
        classes: The gold class of each item.
        clusters: The cluster of each item, such as its most probable role.

    Returns:
        From 0 (independent groupings, or a single cluster) to 1 (the same
        grouping).

    Raises:
        ValueError: if the lists differ in length.

    Example:
    >>> v_measure(["subject", "object", "subject"], [7, 2, 7])
    1.0
    """
    joint = _entropy(zip(classes, clusters, strict=True))
    of_classes, of_clusters = _entropy(classes), _entropy(clusters)
    shared = of_classes + of_clusters - joint
    homogeneity = shared / of_classes if of_classes else 1.0
    completeness = shared / of_clusters if of_clusters else 1.0
    if homogeneity + completeness == 0:
        return 0.0
    return 2 * homogeneity * completeness / (homogeneity + completeness)


def v_measure_by_chance(
    classes: Sequence[Hashable],
    clusters: Sequence[Hashable],
    seed: int = 0,
    draws: int = 200,
) -> float:
    """Averages the V-measure of the classes and shuffled clusters.

    It is above zero, because many small clusters agree a little with anything.

    Args:
        classes: The gold class of each item.
        clusters: The cluster of each item.
        seed: Seed of the shuffles.
        draws: Number of shuffles.

    Returns:
        The mean.

    Example:
    >>> 0 < v_measure_by_chance("aabb", [1, 1, 2, 2]) < 1
    True
    """
    generator, shuffled = random.Random(seed), list(clusters)
    values = []
    for _ in range(draws):
        generator.shuffle(shuffled)
        values.append(v_measure(classes, shuffled))
    return statistics.fmean(values)


def _entropy(items):
    counts = collections.Counter(items)
    total = counts.total()
    return -sum(
        n / total * math.log(n / total) for n in counts.values() if n < total
    )
