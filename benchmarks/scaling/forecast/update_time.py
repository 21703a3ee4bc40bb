"""How long an update takes on n workers: the formula, its fit, its forecast.

The formula is that of `step_seconds`. Nothing here is measured.
"""

from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Compute:
    """What one replica needs for its part of an update.

    Args:
        overhead: seconds of an update, however small its batch.
        per_token: seconds a target token.
    """

    overhead: float
    per_token: float

    def seconds(self, tokens):
        """Gives the seconds for a number of target tokens."""
        return self.overhead + self.per_token * tokens


@dataclass(frozen=True)
class Network:
    """What connects the workers.

    Args:
        latency: seconds of one stage of the ring, however small the message.
        bandwidth: bytes a second, that each worker sends.
    """

    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Assumptions:
    """What is taken for granted of machines that were not there.

    Args:
        gpu_tflops: peak of one GPU, 10^12 floating-point operations a second.
        utilisation: fraction of the peak that the matrix products reach.
        overhead_ms: milliseconds of an update beside them, however small the
            batch: launching, the optimizer, the metrics.
        latency_us: microseconds of one stage of the ring.
        gpus_per_machine: GPUs that are connected inside a machine.
        machine_gbit: 10^9 bits a second that a GPU sends inside a machine.
    """

    gpu_tflops: float = 312.0
    utilisation: float = 0.35
    overhead_ms: float = 10.0
    latency_us: float = 10.0
    gpus_per_machine: int = 8
    machine_gbit: float = 2_400.0


def all_reduce_seconds(num_workers, num_bytes, network):
    """Gives the time of an all-reduce in a ring.

    2 (n - 1) stages, in each of which every worker sends an n-th of the bytes:
    t = 2 (n - 1) (latency + bytes / n / bandwidth).

    Args:
        num_workers: n.
        num_bytes: bytes to be added up, of each worker.
        network: a `Network`.

    Returns:
        Seconds.
    """
    stages = 2 * (num_workers - 1)
    share = num_bytes / num_workers / network.bandwidth
    return stages * (network.latency + share)


def step_seconds(
    num_workers, tokens, num_bytes, compute, network, collectives=1, parts=1
):
    """Gives the time of an update.

    t = overhead + per_token parts tokens + t_ring(n, bytes)
    + (collectives - 1) t_ring(n, 0). Nothing overlaps: the gradients come out
    of one compiled function together.

    Args:
        num_workers: n, of one replica each.
        tokens: target tokens of a replica in one part.
        num_bytes: bytes of the gradients.
        compute: a `Compute`.
        network: a `Network`.
        collectives: all-reduces of an update. All but that of the gradients
            (counts of tokens, metrics) are of a few bytes.
        parts: parts whose gradients are accumulated before they are sent.

    Returns:
        Seconds.
    """
    return (
        compute.seconds(parts * tokens)
        + all_reduce_seconds(num_workers, num_bytes, network)
        + (collectives - 1) * all_reduce_seconds(num_workers, 0, network)
    )


def fit_compute(tokens, seconds):
    """Fits `Compute` to steps of one worker.

    Args:
        tokens: target tokens of each step.
        seconds: its time.

    Returns:
        The `Compute` of the least sum of squared relative errors.
    """
    tokens = np.asarray(tokens, float)
    return Compute(*_fit([np.ones_like(tokens), tokens], seconds))


def fit_network(num_workers, num_bytes, seconds):
    """Fits `Network` to all-reduces of two or more workers.

    Args:
        num_workers: workers of each all-reduce.
        num_bytes: its bytes.
        seconds: its time.

    Returns:
        The `Network` of the least sum of squared relative errors.
    """
    n, num_bytes = (np.asarray(x, float) for x in (num_workers, num_bytes))
    stages = 2 * (n - 1)
    latency, per_byte = _fit([stages, stages * num_bytes / n], seconds)
    return Network(latency, 1 / per_byte if per_byte else np.inf)


def _fit(columns, seconds):
    """Solves for factors that are not negative, relative to the seconds."""
    seconds = np.asarray(seconds, float)
    matrix = np.stack(columns, 1) / seconds[:, None]
    ones = np.ones_like(seconds)
    factors = np.linalg.lstsq(matrix, ones, rcond=None)[0]
    if (factors >= 0).all():
        return factors.tolist()
    # With two factors the best lies on the edge where one of them is zero.
    edges = []
    for kept in range(2):
        factor = np.zeros(2)
        column = matrix[:, kept]
        factor[kept] = max(column @ ones / (column @ column), 0.0)
        error = np.square(matrix @ factor - ones).sum()
        edges.append((error, factor.tolist()))
    return min(edges)[1]


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
    """Forecasts throughput from assumptions.

    Inside one machine the ring has `machine_gbit`. Beyond, each machine's
    network carries the whole ring once, and it is as fast as `network_gbit`.

    Args:
        assumptions: the `Assumptions`.
        gpus: GPUs, one replica each.
        network_gbit: 10^9 bits a second between machines, of each machine.
        flops_per_token: floating-point operations a target token.
        parameters: trained numbers.
        bytes_per_gradient: bytes that are sent for each of them.
        collectives: all-reduces of an update.
        tokens: target tokens of a replica in one part.
        parts: parts whose gradients are accumulated.

    Returns:
        Dict of the columns of a row.
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
