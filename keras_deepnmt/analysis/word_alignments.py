"""Which source word each word of a translation is aligned with."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_deepnmt.analysis.attention import (
    align_by_attention,
    cross_attention_names,
)
from keras_deepnmt.analysis.recorded_model import record, recorded_names
from keras_deepnmt.data.tags import own_tag
from keras_deepnmt.layers.recording import usual_alignment_block
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.models.ensemble import Ensemble
from keras_deepnmt.translator.batches import (
    length_batches,
    padded_batch,
    padded_length,
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
    are left out. For an ensemble, the attention is the mean of its models'
    attention, with the ensemble's weights. Two words are aligned if any of
    their tokens are. In scripts without spaces each letter, with its marks, is
    a word, and so is what stands between the letters (`iPhone`, `，`). A later
    block need not be better:
    `evaluation.alignment_error_rate` compares them.

    Args:
        translator: Translator.
        sources: Sentences.
        targets: Their translations.
        layer: Decoder block of each model, from 1. Defaults to its last but
            one, or the last of two.

    Returns:
        For each pair of sentences the aligned words, `(source word, target
        word)`, both counted from 0, in order; empty where a text is empty, or
        longer than the model's position range or the translator's
        `max_source_length`. Words are those of the text as
        it is given; no word is aligned with a tag, that of the translator or
        the sentence's own.

    Raises:
        ValueError: if the lists differ in length, or a model has no such block
            or no attention to the source.

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
    tags = translator.target_tags(sources)
    texts = (
        translator.tagged(sources),
        translator.tagged_targets(sources, targets),
    )
    sides = [
        tokenizer.encode(side)
        for tokenizer, side in zip(tokenizers, texts, strict=True)
    ]
    rows = list(zip(*sides, strict=True))
    found = []
    for given, tag, *pair, aligned in zip(
        sources,
        tags,
        *texts,
        align_tokens(translator, sources, rows, layer),
        strict=True,
    ):
        starts = tag_starts(translator, tag)
        words = [
            tokenizer.token_words(text, start)
            for tokenizer, text, start in zip(
                tokenizers, pair, starts, strict=True
            )
        ]
        first = first_word(given, tag)
        links = {
            (first + source_word, target_word)
            for source, target in aligned
            for source_word, target_word in itertools.product(
                words[0][source], words[1][target]
            )
        }
        found.append(sorted(links))
    return found


def align_tokens(
    translator: "Translator",
    sources: Sequence[str],
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    layer: int | None = None,
) -> list[list[tuple[int, int]]]:
    """Aligns the tokens of translations with those of their sources.

    `sources` are without the translator's tag. `rows` has for each the source
    and target ids, without special ids, the source's with the translator's tag.
    `layer` is as in `align_words`.

    Returns for each pair the positions `(source token, target token)`, one for
    each target token; none where a row is empty or a tag alone, or longer than
    the model's position range or the translator's `max_source_length`. No token
    is aligned with a tag, the translator's or that of a sentence.
    """
    attention = MeanAttention(translator.model, layer)
    in_tags = tag_lengths(translator, sources)
    limits = translator.max_source_length, translator.model.max_length
    found: list[list[tuple[int, int]]] = [[] for _ in rows]
    fitting = [
        place
        for place, pair in enumerate(rows)
        if all(
            least < len(ids) and (limit is None or len(ids) < limit)
            for ids, least, limit in zip(
                pair, (in_tags[place], 0), limits, strict=True
            )
        )
    ]
    lengths = [max(map(len, rows[place])) + 1 for place in fitting]
    for batch in length_batches(
        lengths, translator.batch_size, translator.batch_tokens
    ):
        places = [fitting[number] for number in batch]
        positions = _align_positions(
            attention,
            [rows[place] for place in places],
            [in_tags[place] for place in places],
        )
        for place, aligned in zip(places, positions, strict=True):
            found[place] = aligned
    return found


class MeanAttention:
    """The attention of a decoder block, the mean of its heads and the models.

    The models are `model`, or those of an ensemble. `layer` is the decoder
    block of each, from 1, or `None`, as in `align_words`.
    """

    def __init__(self, model, layer):
        models, weights = [model], [1.0]
        if isinstance(model, Ensemble):
            models, weights = model.models, model.weights_of_models
        names = [_attention_name(one, layer) for one in models]
        self._models = [
            (weight, name, record(one, name))
            for weight, name, one in zip(weights, names, models, strict=True)
        ]

    def __call__(self, inputs):
        """Returns the attention to the source of inputs: `(B, T, S)`."""
        return sum(
            weight * _mean_of_heads(recorded(inputs)[name])
            for weight, name, recorded in self._models
        )


def _mean_of_heads(weights):
    weights = np.asarray(keras.ops.convert_to_numpy(weights), "float64")
    return weights.mean(axis=tuple(range(1, weights.ndim - 2)))


def _attention_name(model, layer):
    names = cross_attention_names(recorded_names(model))
    if layer is None:
        layer = usual_alignment_block(len(names))
    if not 1 <= layer <= len(names):
        raise ValueError(
            "`layer` must be a decoder block with attention, 1 to "
            f"{len(names)}. Received: layer={layer}"
        )
    return names[layer - 1]


def tag_starts(
    translator: "Translator", target_tag: str | None
) -> tuple[int, int]:
    """Returns how many characters before both sides are the tag's.

    `target_tag` is what `Translator.target_tags` has for the source.
    """
    if translator.tag_side == "target":
        return 0, len(target_tag or "")
    return len(translator.tag or ""), 0


def first_word(source: str, target_tag: str | None) -> int:
    """Returns the number of the first word of a source that the model reads.

    A tag of the sentence's own, which goes to the target, is a word before it.

    Example:
    >>> first_word("<2de> a dog", "<2de>"), first_word("a dog", "<2de>")
    (1, 0)
    """
    is_own = target_tag is not None and own_tag(source, [target_tag])
    return 1 if is_own else 0


def tag_lengths(translator: "Translator", sources: Sequence[str]) -> list[int]:
    """Returns how many tokens of each source, as the model reads it, are a tag.

    It is the translator's tag, or else the sentence's own.
    """
    if translator.tag_side == "target":
        return [0] * len(sources)
    known = translator.training_tags
    tags = [translator.tag or own_tag(source, known) for source in sources]
    lengths = {
        tag: _num_tokens(translator.source_tokenizer, tag) for tag in set(tags)
    }
    return [lengths[tag] for tag in tags]


def _num_tokens(tokenizer, tag):
    if tag is None:
        return 0
    # A space after it belongs to the sentence.
    return tokenizer.token_words(f"{tag} {tag}", len(tag)).count(())


def _align_positions(attention, rows, tag_lengths):
    """Pairs of token positions, without the tags and the end tokens."""
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
    labels = padded_batch([target for _, target in rows], *target_ids.shape)
    is_word = (source_ids != PADDING_ID) & (source_ids != END_ID)
    for row, length in zip(is_word, tag_lengths, strict=True):
        row[:length] = False
    # As a single head.
    weights = attention(inputs)[:, None]
    return align_by_attention(weights, is_word, labels != PADDING_ID)
