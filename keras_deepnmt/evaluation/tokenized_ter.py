"""TER of scripts that Tercom cannot split into words."""

from typing import Any

from sacrebleu.metrics import TER


class TokenizedTer(TER):
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
