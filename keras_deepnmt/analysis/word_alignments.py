"""Which source word each word of a translation is aligned with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_deepnmt.analysis.attention_statistics import align_by_attention
from keras_deepnmt.analysis.recorded_model import record, recorded_names
from keras_deepnmt.decoding.batches import (
    length_batches,
    padded_batch,
    padded_length,
)
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_WORD_START = "▁"


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
        layer: Decoder block, from 1. Defaults to the last but one.

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
    name = _attention_name(translator.model, layer)
    recorded = record(translator.model, name)
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    rows = [
        (source, target)
        for source, target in zip(
            *(
                tokenizer.encode(list(texts))
                for tokenizer, texts in zip(
                    tokenizers, (sources, targets), strict=True
                )
            ),
            strict=True,
        )
    ]
    longest = translator.max_source_length - 1
    found: list[list[tuple[int, int]]] = [[] for _ in rows]
    fitting = [
        place
        for place, pair in enumerate(rows)
        if all(0 < len(ids) <= longest for ids in pair)
    ]
    lengths = [max(map(len, rows[place])) + 1 for place in fitting]
    for batch in length_batches(
        lengths, translator.batch_size, translator.batch_tokens
    ):
        places = [fitting[number] for number in batch]
        positions = _align_positions(
            recorded, name, [rows[place] for place in places]
        )
        for place, aligned in zip(places, positions, strict=True):
            words = [
                _words_of_tokens(tokenizer.pieces(ids))
                for tokenizer, ids in zip(tokenizers, rows[place], strict=True)
            ]
            found[place] = sorted(
                {(words[0][s], words[1][t]) for s, t in aligned}
            )
    return found


def cross_attention_names(names: Sequence[str]) -> list[str]:
    """Chooses the attention of decoder blocks to the source, block by block.

    Args:
        names: Names from `recorded_names`.

    Returns:
        Those of the weights; none if the model has no such attention.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 2)
    >>> cross_attention_names(recorded_names(model))[-1]
    'decoder_block_2/cross_attention/weights'
    """
    cross = [n for n in names if n.endswith("cross_attention/weights")]
    if cross:
        return cross
    # The attention of convolutional decoder blocks.
    return [
        name
        for name in names
        if name.startswith("decoder")
        and name.count("/") == 2
        and name.endswith("/attention/weights")
    ]


def _attention_name(model, layer):
    names = cross_attention_names(recorded_names(model))
    if layer is None:
        layer = max(1, len(names) - 1)
    if not 1 <= layer <= len(names):
        raise ValueError(
            "`layer` must be a decoder block with attention, 1 to "
            f"{len(names)}. Received: layer={layer}"
        )
    return names[layer - 1]


def _align_positions(recorded, name, rows):
    """Pairs of token positions, without the end tokens."""
    lengths = [
        padded_length(max(len(pair[side]) for pair in rows) + 1)
        for side in (0, 1)
    ]
    source_ids = padded_batch(
        [[*source, END_ID] for source, _ in rows], len(rows), lengths[0]
    )
    target_ids = padded_batch(
        [[BEGIN_ID, *target] for _, target in rows], len(rows), lengths[1]
    )
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    weights = np.asarray(keras.ops.convert_to_numpy(recorded(inputs)[name]))
    labels = padded_batch([target for _, target in rows], *target_ids.shape)
    is_word = (source_ids != PADDING_ID) & (source_ids != END_ID)
    return align_by_attention(weights, is_word, labels != PADDING_ID)


def _words_of_tokens(pieces):
    """The number of the word that each piece belongs to."""
    starts = np.array([piece.startswith(_WORD_START) for piece in pieces])
    starts[0] = True
    return (np.cumsum(starts) - 1).tolist()
