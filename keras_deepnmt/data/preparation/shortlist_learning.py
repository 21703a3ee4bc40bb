"""Learns shortlists from the training pairs that were written."""

import math
from collections.abc import Iterator

import numpy as np

from keras_deepnmt.data.context import shorten_context
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.shortlists import Shortlists
from keras_deepnmt.data.word_links import MAX_LINKS, count_links
from keras_deepnmt.errors import UserError

# This many pairs are in memory at a time, beside those that are learned from.
_BLOCK_PAIRS = 1024


def learn_shortlists(
    store: PairStore,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    num_targets: int,
    max_links: int = MAX_LINKS,
    mark: int | None = None,
) -> Shortlists:
    """Learns shortlists from a split, as `Shortlists.learn` does.

    If the split has more than `max_links` word links, those learned from are
    of pairs at regular distances in it, so that all corpora take part. Raises
    a `UserError` if every pair alone has more. With the `mark` of a context
    each target counts as the translation of the sentence after the last one.
    """
    links = count_links(store)
    distance = max(math.ceil(links.sum() / max_links), 1)
    if links.min() > max_links:
        raise UserError(
            "Shortlists are learned from training pairs with at most "
            f"{max_links:,} word links (source tokens times target tokens). "
            f"Received: pairs with {links.min():,} and more. Lower "
            "`max_tokens`, or prepare without `shortlist_targets`."
        )
    return Shortlists.learn(
        _read_spread(store, distance, mark),
        source_vocabulary_size,
        target_vocabulary_size,
        num_targets=num_targets,
        max_links=max_links,
    )


def _read_spread(
    store: PairStore, distance: int, mark: int | None
) -> Iterator[tuple]:
    """Reads every pair once, first those in every `distance`-th row."""
    for is_first in (True, False):
        size = _BLOCK_PAIRS * (distance if is_first else 1)
        for start in range(0, len(store), size):
            rows = np.arange(start, min(start + size, len(store)))
            read = store.read(rows[(rows % distance == 0) == is_first])
            if mark is None:
                yield from read
            else:
                for source, target in read:
                    # The sentence alone, as if none before it had room.
                    yield shorten_context(source, 0, mark), target
