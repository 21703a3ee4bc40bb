"""Entropy of attention weights, and the words that they align."""

from collections.abc import Sequence

import numpy as np


def attention_entropy(
    weights: np.ndarray, query_mask: np.ndarray | None = None
) -> np.ndarray:
    """Computes how widely each head spreads its attention.

        entropy[n] = mean over queries t of -sum_s w[n, t, s] ln w[n, t, s]

    0 means that each query attends to one position, ln S that it attends to S
    positions equally.

    Args:
        weights: Array `(B, N, T, S)`, such as a tensor
            `.../cross_attention/weights` of `record`; leading axes between B
            and N are kept, as the branches of hybrid attention.
        query_mask: Bool array `(B, T)`, `True` = real token. Defaults to all.

    Returns:
        Float array `(N,)`, or `(n, N)` for n branches, in nats.

    Raises:
        ValueError: if `weights` has fewer than four axes, or no query is real.

    Example:
    >>> weights = np.full((1, 2, 3, 4), 0.25)
    >>> attention_entropy(weights).round(3).tolist()
    [1.386, 1.386]
    """
    weights, mask = _check(weights, query_mask)
    # The limit of w ln w at 0 is 0.
    logs = np.log(np.where(weights > 0.0, weights, 1.0))
    entropy = -np.sum(weights * logs, axis=-1)  # (B, ..., N, T)
    by_query = np.moveaxis(entropy, -1, 1)[mask]  # (real queries, ..., N)
    return by_query.mean(axis=0)


def align_by_attention(
    weights: np.ndarray,
    source_mask: np.ndarray | None = None,
    target_mask: np.ndarray | None = None,
) -> list[list[tuple[int, int]]]:
    """Aligns each target position with the source position attended to most.

    The weights are averaged over heads.

    Args:
        weights: Array `(B, N, T, S)` of cross-attention. The query at position
            t predicts label t.
        source_mask: Bool array `(B, S)`, `True` = may be aligned. Defaults to
            all.
        target_mask: Bool array `(B, T)` of the labels. Defaults to all.

    Returns:
        For each sentence pairs `(source position, target position)`, in the
        order of the target.

    Raises:
        ValueError: if `weights` has fewer than four axes, or no query is real.

    Example:
    >>> weights = np.array([[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> align_by_attention(weights)
    [[(0, 0), (1, 1)]]
    """
    weights, mask = _check(weights, target_mask)
    mean = weights.mean(axis=tuple(range(1, weights.ndim - 2)))  # (B, T, S)
    if source_mask is not None:
        real = np.asarray(source_mask, "bool")[:, None, :]
        mean = np.where(real, mean, -1.0)
    best = mean.argmax(axis=-1)  # (B, T)
    return [
        [(int(best[row, t]), int(t)) for t in np.flatnonzero(mask[row])]
        for row in range(len(best))
    ]


def _check(weights, query_mask) -> Sequence[np.ndarray]:
    weights = np.asarray(weights, "float64")
    if weights.ndim < 4:
        raise ValueError(
            "`weights` must have the axes (B, N, T, S). Received: shape "
            f"{weights.shape}."
        )
    shape = weights.shape[0], weights.shape[-2]
    mask = np.ones(shape, "bool") if query_mask is None else query_mask
    mask = np.asarray(mask, "bool")
    if mask.shape != shape or not mask.any():
        raise ValueError(
            f"The mask of the queries must have the shape {shape} and a real "
            f"position. Received: shape {mask.shape}, {mask.sum()} real."
        )
    return weights, mask
