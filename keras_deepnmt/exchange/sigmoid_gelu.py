"""The activation x sigmoid(1.702 x), which toolkits take for GELU.

It is swish of inputs that are 1.702 times as large, divided by 1.702.
"""

import numpy as np

_SLOPE = np.float32(1.702)


def as_silu(weights: dict[str, np.ndarray], network: str) -> None:
    """Scales the weights of a feed-forward network for the activation silu.

    `network` is its path in the weights, such as
    `encoder_block_1/feed_forward`. The arrays in `weights` are replaced.
    """
    for part in ("kernel", "bias"):
        name = f"{network}/intermediate/{part}"
        weights[name] = weights[name] * _SLOPE
    name = f"{network}/output/kernel"
    weights[name] = weights[name] / _SLOPE
