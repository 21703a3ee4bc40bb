"""The counts that corpus scores sum over sentences, and scores of many sums."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.evaluation.scores import make_metrics

_BLEU_ORDER = 4
_CHRF_ORDER = 6
_CHRF_BETA = 2


class MetricCounts:
    """Counts of sentences, and sacreBLEU's score of the sums of such counts.

    The metric is `"bleu"`, `"chrf"`, `"ter"` or the name of one of the user.
    `tokenize` and `lowercase` are as in `corpus_scores`. The script of
    `references` decides how TER splits text, and without `tokenize` also how
    BLEU does.
    """

    def __init__(
        self,
        metric: str,
        tokenize: str | None = "13a",
        lowercase: bool = False,
        references: Sequence[str] = (),
    ):
        made = make_metrics([metric], tokenize, lowercase, references)[metric]
        self._lowercase = lowercase
        self._count, self._score = {
            "bleu": (self._of_bleu, _bleu),
            "chrf": (self._of_chrf, _chrf),
            "ter": (self._of_ter, _ter),
        }.get(metric, (self._of_own, self._own_scores))
        if metric == "bleu":
            # `sentence_score` warns without it. It does not change the counts.
            made.effective_order = True
        self._metric = made

    def of_texts(
        self, texts: Sequence[str], *references: str | None
    ) -> np.ndarray:
        """Counts translations of one sentence: float64 `(texts, counts)`.

        A reference that is `None` does not count.
        """
        given = [line for line in references if line is not None]
        return np.array([self._count(text, given) for text in texts], "float64")

    def of_sentences(
        self,
        hypotheses: Sequence[str],
        reference_sets: Sequence[Sequence[str | None]],
    ) -> np.ndarray:
        """Counts a translation of each sentence: float64 `(sentences, counts)`.

        The references are those that `scores.reference_sets` returns.
        """
        return np.concatenate(
            [
                self.of_texts([line], *of_line)
                for line, *of_line in zip(
                    hypotheses, *reference_sets, strict=True
                )
            ]
        )

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Computes the scores of rows of sums `(rows, counts)`."""
        return self._score(sums)

    def _of_bleu(self, text, references):
        score = self._metric.sentence_score(text, references)
        return [*score.counts, *score.totals, score.sys_len, score.ref_len]

    def _of_ter(self, text, references):
        score = self._metric.sentence_score(text, references)
        return [score.num_edits, score.ref_length]

    def _of_chrf(self, text, references):
        found = self._characters(text)
        rows = np.array(
            [_chrf_counts(found, self._characters(r)) for r in references]
        )
        # As in sacreBLEU: the first of the references with the best score.
        return rows[np.argmax(_chrf(rows))]

    def _of_own(self, text, references):
        sets = [[line] for line in references]
        return self._metric._extract_corpus_statistics([text], sets)[0]

    def _own_scores(self, sums):
        compute = self._metric._compute_score_from_stats
        return np.array([compute(row).score for row in sums])

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


def _ter(sums):
    """SacreBLEU's TER, row by row."""
    edits, length = sums.T
    # Without a word in the references, any edit makes it 100.
    without = np.sign(edits)
    ratio = np.divide(edits, length, out=without, where=length > 0)
    return 100 * ratio
