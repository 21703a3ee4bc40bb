"""The time of an update on n workers: a formula, its fit and its forecast.

`step_seconds` is the formula. Nothing is measured here.
"""

from dataclasses import asdict, dataclass

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


@dataclass(frozen=True)
class Assumptions:
    """Assumptions about GPUs and networks that were not measured.

    Args:
        gpu_tflops: peak of one GPU, in 10^12 floating-point operations per
            second.
        utilisation: fraction of the peak that matrix products reach.
        overhead_ms: milliseconds per update for everything else (kernels,
            the optimizer, the metrics), independent of the batch.
        latency_us: microseconds per stage of the ring.
        gpus_per_machine: number of GPUs that are connected inside a machine.
        machine_gbit: 10^9 bits per second that a GPU sends inside a machine.
    """

    gpu_tflops: float = 312.0
    utilisation: float = 0.35
    overhead_ms: float = 10.0
    latency_us: float = 10.0
    gpus_per_machine: int = 8
    machine_gbit: float = 2_400.0


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


def predict(
    assumptions,
    *,
    gpus,
    network_gbit,
    flops_per_token,
    parameters,
    bytes_per_gradient,
    collectives,
    tokens,
    parts=1,
):
    """Forecasts an update on GPUs; returns the columns of a row.

    Inside one machine the ring has `machine_gbit`. Between machines, each
    machine's network carries the whole ring once, at `network_gbit` (10^9 bits
    per second). There is one replica per GPU. `bytes_per_gradient` are the
    bytes that are sent per parameter, `collectives` the all-reduces per update,
    `tokens` the target tokens of a replica in one part, and `parts` the number
    of parts whose gradients are accumulated.
    """
    a = assumptions
    compute = Compute(
        a.overhead_ms / 1e3,
        flops_per_token / (a.gpu_tflops * 1e12 * a.utilisation),
    )
    slowest = (
        a.machine_gbit
        if gpus <= a.gpus_per_machine
        else min(a.machine_gbit, network_gbit)
    )
    network = Network(a.latency_us / 1e6, slowest * 1e9 / 8)
    num_bytes = parameters * bytes_per_gradient
    step = step_seconds(
        gpus, tokens, num_bytes, compute, network, collectives, parts
    )
    alone = compute.seconds(parts * tokens)
    gradients = all_reduce_seconds(gpus, num_bytes, network)
    return {
        **asdict(a),
        "gpus": gpus,
        "network_gbit": network_gbit,
        "bytes_per_gradient": bytes_per_gradient,
        "parts": parts,
        "tokens_per_replica": tokens,
        "global_tokens": gpus * parts * tokens,
        "collectives": collectives,
        "compute_ms": 1e3 * alone,
        "gradients_ms": 1e3 * gradients,
        "small_all_reduces_ms": 1e3 * (step - alone - gradients),
        "step_ms": 1e3 * step,
        "tokens_per_second": gpus * parts * tokens / step,
        "efficiency": alone / step,
    }
