"""The activation x sigmoid(1.702 x), which toolkits take for GELU.

It is swish of inputs that are 1.702 times as large, divided by 1.702.
"""

import numpy as np

_SLOPE = np.float32(1.702)


def as_silu(weights: dict[str, np.ndarray], network: str) -> None:
    """Scales the weights of a feed-forward network for the activation silu.

    Args:
        weights: arrays by path, which are replaced.
        network: path of the network, such as `encoder_block_1/feed_forward`.

    Example:
    >>> weights = {
    ...     "a/intermediate/kernel": np.ones((1, 1), "float32"),
    ...     "a/intermediate/bias": np.zeros(1, "float32"),
    ...     "a/output/kernel": np.ones((1, 1), "float32"),
    ... }
    >>> as_silu(weights, "a")
    >>> weights["a/intermediate/kernel"].tolist()
    [[1.70...]]
    """
    for part in ("kernel", "bias"):
        name = f"{network}/intermediate/{part}"
        weights[name] = weights[name] * _SLOPE
    name = f"{network}/output/kernel"
    weights[name] = weights[name] / _SLOPE
