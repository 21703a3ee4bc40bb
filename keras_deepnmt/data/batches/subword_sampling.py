"""Draws another segmentation of each sentence whenever it is read."""

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_source import read_pairs
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.batches.epoch_order import draw_bits
from keras_deepnmt.data.batches.segmentation import RandomSegmentation
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.tokenizers import Tokenizer

_STREAM = 103
_NO_LIMIT = 2**31


class SubwordSampling(BatchTransform):
    """Segments each sentence at random whenever it is read.

    With a unigram tokenizer, a segmentation x of a sentence is drawn with
    probability `P(x)^alpha / sum_x' P(x')^alpha` over all segmentations (Kudo,
    2018, subword regularization). With a BPE tokenizer, each merge is skipped
    with probability alpha (Provilkov et al., 2020, BPE-dropout). Labels have
    the same segmentation as the target inputs.

    A drawn segmentation is usually longer than the stored one. Plan the batches
    with `roomy_lengths`, so that most drawn segmentations fit their batch
    shape. One that does not fit is drawn again, `tries` times in all; then the
    stored segmentation is used, as it is for a sentence with an unknown word,
    whose text cannot be recovered. `stored_share` measures how often that
    happens.
    Differs from the papers: a drawn segmentation never makes a batch longer
    than its shape.
    Cost: Python code runs for each character, see `RandomSegmentation`.

    Args:
        tokenizers: Tokenizers of the source and of the target.
        alpha: In [0, 1]. For unigram, 0 is uniform and 1 the distribution of
            the model; for BPE, 0 changes nothing and 1 gives characters.
        seed: Non-negative integer.
        tries: Maximum number of draws per sentence.

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
        self._segmentations = [RandomSegmentation(t, alpha) for t in tokenizers]
        self.alpha = alpha
        self.seed = seed
        self.tries = tries

    def change_pairs(self, pairs, batch_shape, step):
        return self._sample(pairs, batch_shape, step)[0]

    def roomy_lengths(
        self, store: PairStore, num_rows: int = 2048
    ) -> np.ndarray:
        """Estimates lengths that most drawn segmentations do not exceed.

        Evenly spaced rows of the store are drawn once. With the mean growth g
        and the variance v of their lengths, both proportional to the stored
        length n, the estimate is `g n + sqrt(v n)` (one standard deviation), at
        most the longest stored length.

        Args:
            store: The pairs.
            num_rows: Maximum number of rows that are drawn.

        Returns:
            `(n, 2)` integers to use instead of `store.lengths` in
            `choose_batch_shapes` and `BatchPlan`.
        """
        rows = np.unique(
            np.linspace(0, len(store) - 1, num_rows).astype("int64")
        )
        pairs = store.read(rows)
        lengths = np.array(store.lengths)
        for side in (0, 1):
            stored = [pair[side] for pair in pairs]
            drawn = self._sample_side(side, stored, _NO_LIMIT, 0, 1)
            sizes = np.array(
                [
                    (len(old) + 1, len(new) + 1)
                    for old, new in zip(stored, drawn, strict=True)
                    if new is not None
                ]
            ).reshape(-1, 2)
            if len(sizes):
                table = _roomy_length_table(
                    sizes, int(store.lengths[:, side].max())
                )
                lengths[:, side] = table[store.lengths[:, side]]
        return lengths

    def stored_share(
        self, store: PairStore, plan: BatchPlan, num_batches: int = 32
    ) -> float:
        """Measures the share of sentences that keep their stored segmentation.

        Args:
            store: The pairs.
            plan: The plan that tells which rows are in which batch.
            num_batches: Number of batches to measure, from the first one on.

        Returns:
            Share of the sentences of both sides, in [0, 1].
        """
        kept = sentences = 0
        for step in range(min(num_batches, plan.batches_per_epoch)):
            batch_shape, pairs = read_pairs(store, plan, step)
            kept += self._sample(pairs, batch_shape, step)[1]
            sentences += 2 * len(pairs)
        return kept / max(sentences, 1)

    def _sample(self, pairs, batch_shape, step):
        """Returns the new pairs and how many sentences kept the stored ids."""
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
            seeds = draw_bits(
                len(stored), self.seed, _STREAM, side, *stream, attempt
            ).tolist()
            for row, ids in enumerate(stored):
                if drawn[row] is None:
                    new = self._segmentations[side].draw(ids, seeds[row])
                    # One position is for the begin or end of the sentence.
                    if new is not None and len(new) < length:
                        drawn[row] = new
        return drawn


def _roomy_length_table(sizes: np.ndarray, longest: int) -> np.ndarray:
    """Returns the estimated length for each stored length up to `longest`."""
    stored, drawn = sizes.T
    growth = drawn.sum() / stored.sum()
    variance = ((drawn - growth * stored) ** 2 / stored).mean()
    lengths = np.arange(longest + 1)
    roomy = np.ceil(growth * lengths + np.sqrt(variance * lengths))
    return np.clip(roomy.astype("int64"), lengths, longest)
