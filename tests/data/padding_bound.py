"""The least padding that any choice of batch shapes can have."""

import numpy as np

# Steps of the ascent: a share of the last direction is kept, and after so many
# steps without a better limit they get shorter, until they are too short.
_KEPT = 0.6
_PATIENCE = 8
_SHRINKING = 0.85
_SHORTEST_STEP = 1e-4
# A pair that fits no more shapes than this may have any price.
_FEW_SHAPES = 150
# Prices below zero have no effect, and would take long to come back.
_LOWEST = -20


def least_padding(lengths, num_shapes, reached, rounds=2_000):
    """Returns a share of padding that no `num_shapes` batch shapes go below.

    Every pair has a row of its own, in a batch of one of the shapes, whichever
    way pairs are distributed; padding rows are not counted. The least padding
    of `num_shapes` shapes is then the optimum of a k-median problem:

        min over sets J of k shapes of  Σ_i n_i min_{j ∈ J} p_ij

    n_i is the number of pairs of one source and target length, p_ij their
    padding in shape j, infinite if they do not fit. Its Lagrangian dual is a
    lower limit for any numbers u_i:

        Σ_i n_i u_i + the sum of the k lowest  Σ_i n_i min(0, p_ij - u_i)

    Subgradient ascent finds numbers for which the limit is high. Only shapes
    whose two lengths occur in pairs that they contain are tried as j: others
    could be shrunk.

    Args:
        lengths: `(n, 2)` integers, source and target length of each pair.
        num_shapes: Number of batch shapes.
        reached: The share that known shapes have; it sets the size of steps.
        rounds: Number of steps of the ascent; more make the limit higher.

    Returns:
        The limit as a share of all tokens, in [0, 1).
    """
    pairs, counts = np.unique(
        np.asarray(lengths, int), axis=0, return_counts=True
    )
    padding = _padding_of_shapes(pairs)
    num_shapes = min(num_shapes, padding.shape[1])
    chosen = _greedy(padding, counts, num_shapes)
    # About what the best shape and the next one cost a pair.
    two = np.sort(padding[:, chosen], axis=1)[:, :2]
    prices = two.mean(axis=1).clip(max=40)
    # A highest price leaves few shapes that save anything for a pair.
    is_free = np.isfinite(padding).sum(axis=1) <= _FEW_SHAPES
    highest = np.where(is_free, np.inf, 3 * prices + 20)
    real = counts @ pairs.sum(axis=1)
    upper = reached / (1 - reached) * real
    shape, pair = np.nonzero((padding < highest[:, None]).T)
    padding = padding[pair, shape]
    best, step, failures, direction = 0.0, 2.0, 0, 0.0
    for _ in range(rounds):
        saved = np.minimum(padding - prices[pair], 0)
        savings = np.bincount(shape, counts[pair] * saved)
        chosen = np.argpartition(savings, num_shapes - 1)[:num_shapes]
        limit = counts @ prices + savings[chosen].sum()
        failures = 0 if limit > best * (1 + 1e-6) else failures + 1
        best = max(best, limit)
        if failures == _PATIENCE:
            step, failures = _SHRINKING * step, 0
        # One less than the number of shapes that each pair is worth.
        worth = pair[np.isin(shape, chosen) & (saved < 0)]
        missing = 1 - np.bincount(worth, minlength=len(pairs))
        if step < _SHORTEST_STEP or not missing.any():
            break
        direction = missing + _KEPT * direction
        # The last directions may cancel this one.
        squares = max(counts @ direction**2, 1e-3)
        length = step * max(upper - limit, 0.1) / squares
        prices = (prices + length * direction).clip(_LOWEST, highest)
    return float(best / (best + real))


def _padding_of_shapes(pairs):
    shapes = np.stack(
        np.meshgrid(*(np.unique(side) for side in pairs.T)), axis=-1
    ).reshape(-1, 2)
    fits = (pairs[:, None] <= shapes[None]).all(axis=2)
    touches = [
        (fits & (pairs[:, None, side] == shapes[None, :, side])).any(axis=0)
        for side in (0, 1)
    ]
    padding = shapes.sum(axis=1)[None] - pairs.sum(axis=1)[:, None]
    return np.where(fits, padding, np.inf)[:, touches[0] & touches[1]]


def _greedy(padding, counts, num_shapes):
    # Finite, so that every choice has a cost.
    chosen, least = [], np.full(len(counts), 1e6)
    for _ in range(num_shapes):
        costs = counts @ np.minimum(padding, least[:, None])
        chosen.append(int(costs.argmin()))
        least = np.minimum(least, padding[:, chosen[-1]])
    return chosen
