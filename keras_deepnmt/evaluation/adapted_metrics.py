"""Metrics of sacreBLEU, changed for scripts and texts that it fails for."""

from typing import Any

from sacrebleu.metrics import CHRF, TER


class FloatScores:
    """For a metric of sacreBLEU: scores are Python floats, also of samples.

    Without it the interval fails where some samples have a Python float, such
    as 0.0 for no match or 100.0 for empty references, and others one of NumPy:
    sacreBLEU 2.6 takes no mean of both.
    """

    # Private in sacreBLEU, whose metrics all define it.
    def _compute_score_from_stats(self, stats):
        score = super()._compute_score_from_stats(stats)
        score.score = float(score.score)
        return score


class FloatChrf(FloatScores, CHRF):
    """chrF that is a Python float, also of a bootstrap sample.

    Example:
    >>> metric = FloatChrf()
    >>> texts, references = ["a"] + ["b"] * 3, [["a"] + ["c"] * 3]
    >>> metric.corpus_score(texts, references, n_bootstrap=100).score
    25.0
    """


class FloatTer(FloatScores, TER):
    """TER that is a Python float, also of a bootstrap sample.

    Example:
    >>> metric = FloatTer()
    >>> metric.corpus_score(["a", "b"], [["a", ""]], n_bootstrap=100).score
    100.0
    """


class TokenizedTer(FloatTer):
    """TER that counts the words of one of BLEU's tokenizers.

    Tercom's support of Asian scripts splits Chinese and Japanese only. In other
    scripts without spaces it takes what stands between two spaces, often a
    whole sentence, for one word.

    Args:
        tokenizer: Tokenizer of a `sacrebleu.metrics.BLEU`. The signature names
            it after Tercom's, which lower-cases the text first.

    Example:
    >>> from sacrebleu.metrics import BLEU
    >>> metric = TokenizedTer(BLEU(tokenize="char").tokenizer)
    >>> metric.corpus_score(["ສະບາຍ"], [["ສະບາຊ"]]).score
    20.0
    """

    def __init__(self, tokenizer: Any):
        super().__init__()
        self._words = tokenizer
        self.tokenizer_signature += f"-{tokenizer.signature()}"

    # Private in sacreBLEU, which has no other place for words; a test scores
    # texts by it.
    def _preprocess_segment(self, sent):
        return self._words(super()._preprocess_segment(sent))
