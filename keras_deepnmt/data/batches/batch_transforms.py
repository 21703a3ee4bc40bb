"""Random changes to training batches, as functions of (seed, update) alone."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.epoch_order import draw_bits
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

# The random stream of word dropout. Transforms use streams of four or more
# numbers, the order of batches uses shorter ones.
_STREAM = 101

Pairs = Sequence[tuple[np.ndarray, np.ndarray]]


class BatchTransform:
    """Base class of the changes that `training_dataset` can make to each batch.

    Both methods must depend on their arguments and a seed alone: several
    threads make the batches, and after a resume any update may be the first.

    Example:
    >>> BatchTransform().change_pairs([([7], [8])], BatchShape(1, 3, 3), step=5)
    [([7], [8])]
    """

    def change_pairs(
        self, pairs: Pairs, batch_shape: BatchShape, step: int
    ) -> Pairs:
        """Changes the pairs of ids before they are padded.

        Args:
            pairs: Pairs of ids without special ids.
            batch_shape: The shape they must fit.
            step: Number of the update.

        Returns:
            The changed pairs, the same number of them.
        """
        return pairs

    def change_inputs(
        self, inputs: dict[str, np.ndarray], step: int
    ) -> dict[str, np.ndarray]:
        """Changes the inputs of the model; labels are not changed.

        Args:
            inputs: `{"source_ids", "target_ids"}`, `(B, S)` and `(B, T)`.
            step: Number of the update.

        Returns:
            Inputs of the same shapes, and others that terms of the objective
            need.
        """
        return inputs


class WordDropout(BatchTransform):
    """Replaces random input tokens by the unknown token.

    Each source token and each target input becomes id 1 with probability p,
    independently; begin, end and padding are kept, and so are the labels. On
    the target side, a decoder that does not see the previous token must rely
    more on the source (Bowman et al., 2016).
    Differs from the paper: the source side is treated in the same way. Gal and
    Ghahramani (2016) drop all occurrences of a word in a sentence together;
    here each position is drawn independently.

    Args:
        probability: The probability p, in [0, 1).
        seed: Non-negative integer.
        kept: Ids that are never replaced, by the name of the input: of tags and
            of marks, without which a sentence would ask for something else.

    Raises:
        ValueError: if `probability` is outside [0, 1).

    Example:
    >>> ids = np.array([[4, 7, 7]])
    >>> dropout = WordDropout(0.999999, kept={"source_ids": [4]})
    >>> dropout.change_inputs({"source_ids": ids}, step=5)
    {'source_ids': array([[4, 1, 1]])}

    Reference:
        - [Bowman et al., 2016](https://arxiv.org/abs/1511.06349).
    """

    def __init__(
        self,
        probability: float,
        seed: int = 0,
        kept: Mapping[str, Sequence[int]] | None = None,
    ):
        if not 0.0 <= probability < 1.0:
            raise ValueError(
                "`probability` must lie in [0, 1). "
                f"Received: probability={probability}."
            )
        self.probability = probability
        self.seed = seed
        self.kept = dict(kept or {})

    def change_inputs(self, inputs, step):
        return {
            name: self._drop(ids, step, side, self.kept.get(name, ()))
            for side, (name, ids) in enumerate(sorted(inputs.items()))
        }

    def _drop(self, ids, step, side, kept):
        bits = draw_bits(ids.size, self.seed, _STREAM, side, step, 0)
        dropped = (bits >> 11).reshape(ids.shape) < self.probability * 2**53
        is_kept = np.isin(ids, (PADDING_ID, BEGIN_ID, END_ID, *kept))
        return np.where(dropped & ~is_kept, ids.dtype.type(UNKNOWN_ID), ids)
