"""The counts that BLEU and chrF sum over sentences, and scores of many sums."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.scores import make_metrics

METRICS = ("bleu", "chrf")
_BLEU_ORDER = 4
_CHRF_ORDER = 6
_CHRF_BETA = 2


class MetricCounts:
    """Counts of sentences, and sacreBLEU's score of the sums of such counts.

    Attributes:
        metric: `"bleu"` or `"chrf"`.

    Raises:
        UserError: if the metric or BLEU's tokenizer is unknown, or the
            tokenizer cannot be used.

    Example:
    >>> counts = MetricCounts("bleu")
    >>> sums = counts.of_texts(["a b c d", "a b c e"], "a b c d")
    >>> [round(score) for score in counts.scores(sums)]
    [100, 59]
    """

    def __init__(
        self, metric: str, tokenize: str = "13a", lowercase: bool = False
    ):
        if metric not in METRICS:
            raise UserError(
                f"`metric` must be one of {', '.join(METRICS)}. "
                f"Received: {metric}"
            )
        self.metric = metric
        self._lowercase = lowercase
        # Raises the error for a wrong tokenizer.
        make_metrics([metric], tokenize, lowercase)
        if metric == "bleu":
            from sacrebleu.metrics import BLEU

            # `effective_order` avoids a warning, and does not change counts.
            self._bleu = BLEU(
                lowercase, tokenize=tokenize, force=True, effective_order=True
            )

    def of_texts(self, texts: Sequence[str], reference: str) -> np.ndarray:
        """Counts translations of one sentence: float64 `(texts, counts)`."""
        if self.metric == "bleu":
            rows = [self._bleu_counts(text, reference) for text in texts]
        else:
            expected = self._characters(reference)
            rows = [_chrf_counts(self._characters(t), expected) for t in texts]
        return np.array(rows, "float64")

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Computes the scores, 0 to 100, of rows of sums `(rows, counts)`."""
        return _bleu(sums) if self.metric == "bleu" else _chrf(sums)

    def _bleu_counts(self, text, reference):
        score = self._bleu.sentence_score(text, [reference])
        return [*score.counts, *score.totals, score.sys_len, score.ref_len]

    def _characters(self, text):
        """The n-grams of characters, without white space, of each order."""
        text = "".join((text.lower() if self._lowercase else text).split())
        return [
            Counter(text[n : n + order] for n in range(len(text) - order + 1))
            for order in range(1, _CHRF_ORDER + 1)
        ]


def _chrf_counts(found, expected):
    rows = []
    for ours, theirs in zip(found, expected, strict=True):
        # As in sacreBLEU: nothing counts for an order that the reference is
        # too short for.
        rows.append(ours.total() if theirs else 0)
        rows += [theirs.total(), (ours & theirs).total()]
    return rows


def _bleu(sums):
    """SacreBLEU's BLEU with its default smoothing, row by row."""
    matches = sums[:, :_BLEU_ORDER]
    totals = sums[:, _BLEU_ORDER : 2 * _BLEU_ORDER]
    length, reference_length = sums[:, -2:].T
    log_precision = np.zeros(len(sums))
    smoothing = np.ones(len(sums))
    for order in range(_BLEU_ORDER):
        is_zero = matches[:, order] == 0
        # An order without matches counts as half a match, the next one as a
        # quarter, and so on.
        smoothing = np.where(is_zero, 2 * smoothing, smoothing)
        matched = np.where(is_zero, 1 / smoothing, matches[:, order])
        log_precision += np.log(matched / np.maximum(totals[:, order], 1))
    brevity = np.minimum(0, 1 - reference_length / np.maximum(length, 1))
    scores = 100 * np.exp(brevity + log_precision / _BLEU_ORDER)
    # Without n-grams of an order, or any match, BLEU is 0.
    is_defined = (totals > 0).all(axis=1) & matches.any(axis=1)
    return np.where(is_defined, scores, 0.0)


def _chrf(sums):
    """SacreBLEU's chrF2, row by row."""
    ours, theirs, matches = (sums[:, place::3] for place in range(3))
    is_counted = (ours > 0) & (theirs > 0)
    orders = np.maximum(is_counted.sum(axis=1), 1)
    precision, recall = (
        (is_counted * matches / np.maximum(numbers, 1)).sum(axis=1) / orders
        for numbers in (ours, theirs)
    )
    factor = _CHRF_BETA**2
    divisor = factor * precision + recall
    product = (1 + factor) * precision * recall
    return 100 * product / np.where(divisor > 0, divisor, 1)
