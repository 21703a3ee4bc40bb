"""The word links of training pairs, which bound what is learned from them."""

import math
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.pair_store import PairStore

# At 20 million links learning takes about 1.6 GB of memory.
MAX_LINKS = 20_000_000


def count_links(store: PairStore) -> np.ndarray:
    """Counts the links of each pair: (source words + 1) times target words."""
    # The index has one special id on each side, the source of a link may be
    # the empty word.
    return store.lengths[:, 0].astype("int64") * (
        store.lengths[:, 1].astype("int64") - 1
    )


def pairs_at_distances(
    store: PairStore, max_links: int = MAX_LINKS
) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Reads pairs at regular distances, with at most `max_links` links.

    A pair that alone has more is left out.

    Example:
    >>> from keras_deepnmt.data import ShardWriter
    >>> with ShardWriter(".", "train") as writer:
    ...     writer.write([5, 6], [7, 8, 9])
    >>> [len(side) for side in pairs_at_distances(PairStore(".", "train"))[0]]
    [2, 3]
    """
    links = count_links(store)
    rows = np.flatnonzero(links <= max_links)
    distance = max(math.ceil(links[rows].sum() / max_links), 1)
    rows = rows[::distance]
    rows = rows[np.cumsum(links[rows]) <= max_links]
    return list(store.read(rows))
