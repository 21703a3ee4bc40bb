"""chrF whose bootstrap interval exists for every text."""

from sacrebleu.metrics import CHRF


class FloatChrf(CHRF):
    """chrF that is a Python float, also of a bootstrap sample.

    Without it the interval fails where a sample has no n-gram in common with
    the references: there sacreBLEU 2.6 has a Python float, elsewhere one of
    NumPy, and takes no mean of both.

    Example:
    >>> metric = FloatChrf()
    >>> texts, references = ["a"] + ["b"] * 3, [["a"] + ["c"] * 3]
    >>> metric.corpus_score(texts, references, n_bootstrap=100).score
    25.0
    """

    # Private in sacreBLEU; a test scores texts by it.
    def _compute_f_score(self, statistics):
        return float(super()._compute_f_score(statistics))
