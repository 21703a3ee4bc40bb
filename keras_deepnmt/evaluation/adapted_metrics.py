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
    """chrF that is a Python float, also of a bootstrap sample."""


class FloatTer(FloatScores, TER):
    """TER that is a Python float, also of a bootstrap sample."""


class TokenizedTer(FloatTer):
    """TER that counts the words of one of BLEU's tokenizers.

    Tercom's support of Asian scripts splits Chinese and Japanese only. In other
    scripts without spaces it takes what stands between two spaces, often a
    whole sentence, for one word.

    The tokenizer is that of a `sacrebleu.metrics.BLEU`. The signature names it
    after Tercom's, which lower-cases the text first.
    """

    def __init__(self, tokenizer: Any):
        super().__init__()
        self._words = tokenizer
        self.tokenizer_signature += f"-{tokenizer.signature()}"

    # Private in sacreBLEU, which has no other place for words; a test scores
    # texts by it.
    def _preprocess_segment(self, sent):
        return self._words(super()._preprocess_segment(sent))
