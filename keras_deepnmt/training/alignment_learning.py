"""Learns which words are translations, in both directions."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.context import shorten_context
from keras_deepnmt.data.lexical_table import (
    EMPTY_ID,
    EMPTY_PROBABILITY,
    TENSION,
    learn_lexical_table,
)
from keras_deepnmt.models import AlignmentModel, TranslationTable

NUM_TRANSLATIONS = 16


def learn_alignment_model(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    *,
    tension: float = TENSION,
    num_translations: int = NUM_TRANSLATIONS,
    mark: int | None = None,
) -> AlignmentModel:
    """Learns the tables of an `AlignmentModel` from parallel text.

    Each direction is `learn_lexical_table` with the diagonal prior, five
    iterations of expectation maximization. Nothing is random.

    Args:
        pairs: Ids of each source and target sentence, without special ids.
        source_vocabulary_size: Number of ids of the source vocabulary.
        target_vocabulary_size: Number of ids of the target vocabulary.
        tension: How much a link near the diagonal is preferred, at least 0.
        num_translations: Maximum number of translations of a word that are
            kept, the most probable ones.
        mark: Id of the mark between the sentences of a context, if sources have
            one. Targets are then translations of the sentence after the last
            mark, and the words before it have no links.

    Returns:
        The model.

    Raises:
        ValueError: if no pair has a word on both sides.

    Example:
    >>> pairs = [([4, 5], [6, 7]), ([4], [6])]
    >>> alignments = learn_alignment_model(pairs, 8, 8)
    >>> alignments.forward.ids[4:6, 0].tolist()
    [6, 7]
    """
    sizes = source_vocabulary_size, target_vocabulary_size
    if mark is not None:
        pairs = [
            (shorten_context(np.asarray(source), 0, mark), target)
            for source, target in pairs
        ]
    filled = [pair for pair in pairs if len(pair[0]) and len(pair[1])]
    swapped = [(target, source) for source, target in filled]
    tables = [
        _translations(
            learn_lexical_table(links, tension=tension), *ends, num_translations
        )
        for links, ends in ((filled, sizes), (swapped, sizes[::-1]))
    ]
    return AlignmentModel(*tables, tension, EMPTY_PROBABILITY, mark)


def _translations(table, given_size, size, number):
    """Keeps the most probable translations of each word."""
    ids = np.full((given_size, number), -1, "int32")
    probabilities = np.zeros((given_size, number), "float32")
    empty = np.zeros(size, "float32")
    of_empty = table.source_ids == EMPTY_ID
    empty[table.target_ids[of_empty]] = table.probabilities[of_empty]
    given, words, found = (
        values[~of_empty]
        for values in (table.source_ids, table.target_ids, table.probabilities)
    )
    order = np.lexsort((words, -found, given))
    given, words, found = given[order], words[order], found[order]
    # The place of each entry among those of its word.
    ranks = np.arange(len(given)) - np.searchsorted(given, given)
    best = ranks < number
    places = given[best], ranks[best]
    ids[places], probabilities[places] = words[best], found[best]
    return TranslationTable(ids, probabilities, empty)
