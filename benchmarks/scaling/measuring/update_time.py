"""The time of an update on n workers: a formula and its fit.

`step_seconds` is the formula. Nothing is measured here.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Compute:
    """The compute time of one replica's part of an update.

    Args:
        overhead: seconds per update, independent of the batch.
        per_token: seconds per target token.
    """

    overhead: float
    per_token: float

    def seconds(self, tokens):
        """Returns the seconds for a number of target tokens."""
        return self.overhead + self.per_token * tokens


@dataclass(frozen=True)
class Network:
    """The network between the workers.

    Args:
        latency: seconds per stage of the ring, independent of the message.
        bandwidth: bytes per second that each worker sends.
    """

    latency: float
    bandwidth: float


def all_reduce_seconds(num_workers, num_bytes, network):
    """Returns the time of a ring all-reduce.

    There are 2 (n - 1) stages, in each of which every worker sends an n-th of
    its bytes: t = 2 (n - 1) (latency + bytes / n / bandwidth).
    """
    stages = 2 * (num_workers - 1)
    share = num_bytes / num_workers / network.bandwidth
    return stages * (network.latency + share)


def step_seconds(
    num_workers, tokens, num_bytes, compute, network, collectives=1, parts=1
):
    """Returns the time of an update on n workers with one replica each.

    t = overhead + per_token parts tokens + t_ring(n, bytes) + (collectives - 1)
    t_ring(n, 0).

    Nothing overlaps, because all gradients are results of one compiled
    function. `tokens` are the target tokens of a replica in one part; `parts`
    is the number of parts whose gradients are accumulated before they are sent;
    `num_bytes` are the bytes of the gradients. `collectives` is the number of
    all-reduces per update; all but that of the gradients (counts of tokens,
    metrics) have a few bytes.
    """
    return (
        compute.seconds(parts * tokens)
        + all_reduce_seconds(num_workers, num_bytes, network)
        + (collectives - 1) * all_reduce_seconds(num_workers, 0, network)
    )


def fit_compute(tokens, seconds):
    """Fits `Compute` to the times of updates of one worker.

    Minimizes the sum of squared relative errors.
    """
    tokens = np.asarray(tokens, float)
    return Compute(*_fit([np.ones_like(tokens), tokens], seconds))


def fit_network(num_workers, num_bytes, seconds):
    """Fits `Network` to the times of all-reduces of two or more workers.

    Minimizes the sum of squared relative errors.
    """
    n, num_bytes = (np.asarray(x, float) for x in (num_workers, num_bytes))
    stages = 2 * (n - 1)
    latency, per_byte = _fit([stages, stages * num_bytes / n], seconds)
    return Network(latency, 1 / per_byte if per_byte else np.inf)


def _fit(columns, seconds):
    """Solves for non-negative factors, minimizing squared relative errors."""
    seconds = np.asarray(seconds, float)
    matrix = np.stack(columns, 1) / seconds[:, None]
    ones = np.ones_like(seconds)
    factors = np.linalg.lstsq(matrix, ones, rcond=None)[0]
    if (factors >= 0).all():
        return factors.tolist()
    # With two factors, the best solution then has one factor equal to zero.
    solutions = []
    for nonzero in range(2):
        factor = np.zeros(2)
        column = matrix[:, nonzero]
        factor[nonzero] = max(column @ ones / (column @ column), 0.0)
        error = np.square(matrix @ factor - ones).sum()
        solutions.append((error, factor.tolist()))
    return min(solutions)[1]
