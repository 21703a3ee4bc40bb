"""Which source word each word of a translation is aligned with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_deepnmt.analysis.alignments.token_alignments import (
    align_tokens,
    words_of_tokens,
)

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def align_words(
    translator: "Translator",
    sources: Sequence[str],
    targets: Sequence[str],
    layer: int | None = None,
) -> list[list[tuple[int, int]]]:
    """Aligns the words of translations with those of their sources.

    The model reads each pair, the translation as given. A token of the
    translation is aligned with the source token that one decoder block attends
    to most when it predicts the token, in the mean of its heads; the end tokens
    are left out. Two words are aligned if any of their tokens are. A later
    block need not be better: `evaluation.alignment_error_rate` compares them.

    Args:
        translator: Translator with a single model.
        sources: Sentences.
        targets: Their translations.
        layer: Decoder block, from 1. Defaults to the last but one, or the last
            of two.

    Returns:
        For each pair of sentences the aligned words, `(source word, target
        word)`, both counted from 0, in order; empty where a text is empty or
        longer than the model's position range.

    Raises:
        ValueError: if the lists differ in length, or the model has no such
            block or no attention to the source.

    Example:
    >>> align_words(translator, ["a little dog"], ["ein kleiner Hund"])
    [[(0, 0), (1, 1), (2, 2)]]
    """
    if len(sources) != len(targets):
        raise ValueError(
            "`sources` and `targets` must have the same length. Received: "
            f"{len(sources)} and {len(targets)}"
        )
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    sides = [
        tokenizer.encode(list(texts))
        for tokenizer, texts in zip(tokenizers, (sources, targets), strict=True)
    ]
    rows = list(zip(*sides, strict=True))
    found = []
    for pair, aligned in zip(
        rows, align_tokens(translator, rows, layer), strict=True
    ):
        words = [
            words_of_tokens(tokenizer.pieces(ids))
            for tokenizer, ids in zip(tokenizers, pair, strict=True)
        ]
        found.append(sorted({(words[0][s], words[1][t]) for s, t in aligned}))
    return found
