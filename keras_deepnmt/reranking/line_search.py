"""Finds the best weight along a line exactly: minimum error rate training.

Along a line in the space of weights, the score of each translation is a linear
function of the place on the line. The best translation of a sentence changes
only where two such functions cross, so that the metric of the whole text is
constant between finitely many places.
"""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.evaluation.metric_counts import MetricCounts

# Two scores of the metric closer than this count as equal.
EQUAL = 1e-9
# How far behind the last crossing a place is chosen.
_BEYOND = 1.0


def upper_envelope(
    intercepts: np.ndarray, slopes: np.ndarray
) -> tuple[list[float], list[int]]:
    """Finds which of several lines `intercept + place * slope` is highest.

    The result is the places from which a line is the highest one, the first of
    them minus infinity, and the numbers of these lines. Of equal lines it is
    the first.
    """
    starts: list[float] = []
    lines: list[int] = []
    number = np.arange(len(slopes))
    for line in np.lexsort((number, -intercepts, slopes)).tolist():
        if lines and slopes[line] == slopes[lines[-1]]:
            continue  # a parallel line that is not higher
        start = -np.inf
        while lines:
            last = lines[-1]
            start = (intercepts[last] - intercepts[line]) / (
                slopes[line] - slopes[last]
            )
            if start > starts[-1]:
                break
            # The last line is nowhere the highest one.
            starts.pop()
            lines.pop()
            start = -np.inf
        starts.append(float(start))
        lines.append(line)
    return starts, lines


def best_place(
    intercepts: Sequence[np.ndarray],
    slopes: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    metric: MetricCounts,
) -> tuple[float, float]:
    """Finds the place on a line where the metric of the text is best.

    For each sentence, `intercepts` are the scores `(n,)` of its translations at
    place 0, `slopes` how much they grow by a step of 1, and `counts` the counts
    `(n, counts)` of the translations.

    The result is the place, the middle of the widest of the best intervals, and
    the score of the metric there. The place is 0 if nothing changes along the
    line.
    """
    total = np.zeros(counts[0].shape[1])
    places, changes = [], []
    for intercept, slope, rows in zip(intercepts, slopes, counts, strict=True):
        starts, lines = upper_envelope(intercept, slope)
        total += rows[lines[0]]
        places += starts[1:]
        changes.append(np.diff(rows[lines], axis=0))
    if not places:
        return 0.0, float(metric.scores(total[None])[0])
    order = np.argsort(places, kind="stable")
    crossings = np.array(places)[order]
    changes = np.concatenate(changes)[order]
    sums = total + np.concatenate([[0 * total], np.cumsum(changes, axis=0)])
    ends = np.concatenate(
        [[crossings[0] - 2 * _BEYOND], crossings, [crossings[-1] + 2 * _BEYOND]]
    )
    widths = np.diff(ends)
    scores = np.where(widths > 0, metric.scores(sums), -np.inf)
    is_best = scores > scores.max() - EQUAL
    best = int(np.argmax(np.where(is_best, widths, -np.inf)))
    return float((ends[best] + ends[best + 1]) / 2), float(scores[best])
