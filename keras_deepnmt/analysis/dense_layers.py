"""Which earlier layers the blocks of a dense stack read."""

from collections.abc import Sequence

import keras
import numpy as np


def dense_layer_norms(
    blocks: Sequence[keras.layers.Layer],
) -> tuple[list[str], np.ndarray]:
    """Measures the weights with which each block reads each earlier state.

        norm[l, i] = sqrt(sum K_i^2 / width of state i)

    K_i is the part of block l's convolution kernel that multiplies state i of
    its input, the concatenation of states in Shen et al. (2018, Eq. 6). A root
    mean square over channels makes states of different widths comparable.

    Args:
        blocks: Built `layers.ConvEncoderBlock` or `layers.ConvDecoderBlock` in
            their order, such as a model's `encoder_blocks`.

    Returns:
        The names of the states in their order, `"input"`, `"block 1"` and, in
        a decoder, `"attention 1"`, ...; and a float array with a row for each
        block and a column for each state, `nan` where a block cannot read the
        state.

    Raises:
        ValueError: if the blocks are not convolutional, or not built.

    Example:
    >>> layers = keras_deepnmt.layers
    >>> blocks = [layers.ConvEncoderBlock(5, "dense") for _ in range(2)]
    >>> states = [np.zeros((1, 3, 7), "float32")]
    >>> for block in blocks:
    ...     states = block(states)
    >>> names, norms = dense_layer_norms(blocks)
    >>> names, norms.shape
    (['input', 'block 1', 'block 2'], (2, 3))
    """
    if not blocks or not all(
        hasattr(block, "connection") and block.built for block in blocks
    ):
        raise ValueError(
            "`blocks` must be built convolutional blocks. Received: "
            f"{[type(block).__name__ for block in blocks]}."
        )
    names = ["input"]
    # The states that a block reads: (column, width), newest first.
    states = [(0, blocks[0].convolution.width)]
    rows = []
    for number, block in enumerate(blocks, start=1):
        rows.append(_norms(block, states))
        new = []
        for kind in _outputs(block):
            new.append((len(names), block.filters))
            names.append(f"{kind} {number}")
        states = [*new, *states] if block.connection == "dense" else new
    norms = np.full((len(blocks), len(names)), np.nan)
    for row, by_column in enumerate(rows):
        for column, norm in by_column.items():
            norms[row, column] = norm
    return names, norms


def _outputs(block):
    """What a block adds to the states: its output, attention if it is dense."""
    is_dense_decoder = hasattr(block, "attention") and (
        block.connection == "dense"
    )
    return ["block", "attention"] if is_dense_decoder else ["block"]


def _norms(block, states):
    kernel = block.convolution.convolution.kernel  # (k, D, 2 U)
    kernel = keras.ops.convert_to_numpy(kernel).astype("float64")
    norms, start = {}, 0
    for column, width in states:
        part = kernel[:, start : start + width]
        norms[column] = np.sqrt(np.sum(part**2) / width)
        start += width
    return norms
