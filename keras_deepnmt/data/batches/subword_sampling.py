"""Another segmentation of each sentence in each epoch."""

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_source import read_pairs
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.batches.epoch_order import raw_bits
from keras_deepnmt.data.batches.segmentation import RandomSegmentation
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.tokenizers import Tokenizer

_STREAM = 103
_LONG = 2**31


class SubwordSampling(BatchTransform):
    """Cuts each sentence anew, at random, whenever it is read.

    A unigram tokenizer draws a segmentation x of a sentence with probability
    `P(x)^alpha / sum_x' P(x')^alpha` over all of them (Kudo, 2018, subword
    regularization); a BPE tokenizer leaves out each merge with the probability
    alpha (Provilkov et al., 2020, BPE-dropout). Labels are cut as the target
    inputs are.

    A drawn segmentation is usually longer than the stored one. Plan the batches
    with `roomy_lengths`, so that most of them fit in their batch's shape. One
    that does not is drawn again, `tries` times in all, and then the stored one
    stays, as it does for a sentence with an unknown word, whose text is not
    known; `stored_share` counts both.
    Differs from the papers: a drawn segmentation never makes a batch longer
    than its shape.
    Cost: Python at each character, see `RandomSegmentation`.

    Args:
        tokenizers: Tokenizers of the source and of the target.
        alpha: In [0, 1]. For unigram, 0 is uniform and 1 the model's own
            distribution; for BPE, 0 changes nothing and 1 leaves characters.
        seed: Non-negative integer.
        tries: Most draws of a sentence.

    Raises:
        ValueError: if `alpha` is outside [0, 1] or `tries` below 1.

    Example:
    >>> sampling = SubwordSampling(tokenizers, alpha=0.1)
    >>> plan = BatchPlan(sampling.roomy_lengths(store), batch_shapes)
    >>> training_dataset(store, plan, transforms=[sampling])

    Reference:
        - [Kudo, 2018](https://arxiv.org/abs/1804.10959).
        - [Provilkov et al., 2020](https://arxiv.org/abs/1910.13267).
    """

    def __init__(
        self,
        tokenizers: tuple[Tokenizer, Tokenizer],
        alpha: float,
        seed: int = 0,
        tries: int = 3,
    ):
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(
                f"`alpha` must lie in [0, 1]. Received: alpha={alpha}."
            )
        if tries < 1:
            raise ValueError(
                f"`tries` must be at least 1. Received: tries={tries}."
            )
        self._cuts = [RandomSegmentation(t, alpha) for t in tokenizers]
        self.alpha = alpha
        self.seed = seed
        self.tries = tries

    def change_pairs(self, pairs, batch_shape, step):
        return self._sample(pairs, batch_shape, step)[0]

    def roomy_lengths(
        self, store: PairStore, num_rows: int = 2048
    ) -> np.ndarray:
        """Estimates lengths that most drawn segmentations keep.

        Rows evenly spread over the store are drawn once. With their mean growth
        g and variance v, both in proportion to the stored length n, the room is
        `g n + sqrt(v n)`, one standard deviation, and never more than the
        longest stored sentence has.

        Args:
            store: Where the pairs are.
            num_rows: Most rows that are drawn.

        Returns:
            `(n, 2)` integers in place of `store.lengths`, for
            `choose_batch_shapes` and `BatchPlan`.
        """
        rows = np.unique(
            np.linspace(0, len(store) - 1, num_rows).astype("int64")
        )
        pairs = store.read(rows)
        room = np.array(store.lengths)
        for side in (0, 1):
            stored = [pair[side] for pair in pairs]
            drawn = self._sample_side(side, stored, _LONG, 0, 1)
            sizes = np.array(
                [
                    (len(old) + 1, len(new) + 1)
                    for old, new in zip(stored, drawn, strict=True)
                    if new is not None
                ]
            ).reshape(-1, 2)
            if len(sizes):
                table = _room_table(sizes, int(store.lengths[:, side].max()))
                room[:, side] = table[store.lengths[:, side]]
        return room

    def stored_share(
        self, store: PairStore, plan: BatchPlan, num_batches: int = 32
    ) -> float:
        """Measures how many sentences keep their stored segmentation.

        Args:
            store: Where the pairs are.
            plan: Which rows make which batch.
            num_batches: Batches looked at, from the first one on.

        Returns:
            Share of both sides' sentences, in [0, 1].
        """
        kept = sentences = 0
        for step in range(min(num_batches, plan.batches_per_epoch)):
            batch_shape, pairs = read_pairs(store, plan, step)
            kept += self._sample(pairs, batch_shape, step)[1]
            sentences += 2 * len(pairs)
        return kept / max(sentences, 1)

    def _sample(self, pairs, batch_shape, step):
        """Gives the new pairs and how many sentences stayed as stored."""
        sides, kept = [], 0
        lengths = (batch_shape.source_length, batch_shape.target_length)
        for side, length in enumerate(lengths):
            stored = [pair[side] for pair in pairs]
            drawn = self._sample_side(side, stored, length, step, 0)
            kept += sum(ids is None for ids in drawn)
            sides.append(
                [
                    old if new is None else new
                    for old, new in zip(stored, drawn, strict=True)
                ]
            )
        return list(zip(*sides, strict=True)), kept

    def _sample_side(self, side, stored, length, *stream):
        drawn = [None] * len(stored)
        for attempt in range(self.tries):
            seeds = raw_bits(
                len(stored), self.seed, _STREAM, side, *stream, attempt
            ).tolist()
            for row, ids in enumerate(stored):
                if drawn[row] is None:
                    new = self._cuts[side].draw(ids, seeds[row])
                    # One place is for the begin or end of the sentence.
                    if new is not None and len(new) < length:
                        drawn[row] = new
        return drawn


def _room_table(sizes: np.ndarray, longest: int) -> np.ndarray:
    """The room of each stored length up to the longest, from drawn samples."""
    stored, drawn = sizes.T
    growth = drawn.sum() / stored.sum()
    variance = ((drawn - growth * stored) ** 2 / stored).mean()
    lengths = np.arange(longest + 1)
    room = np.ceil(growth * lengths + np.sqrt(variance * lengths))
    return np.clip(room.astype("int64"), lengths, longest)
