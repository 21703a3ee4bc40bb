"""How texts are compared with each other, whatever their tokenizers do."""

from keras_deepnmt.data.normalization import load_normalization


def compared_text(text: str) -> str:
    """Returns a text as filters and counts of repeated text read it.

    Texts that look the same count as the same, also where the tokenizers keep
    them apart: so the pairs that are kept do not depend on the tokenizers, and
    both sides of a pair are read alike. It has single spaces. Nothing but
    comparisons sees it.

    Example:
    >>> compared_text("  eﬃcient\u3000word ")
    'efficient word'
    """
    return load_normalization("nfkc").normalize(text)
