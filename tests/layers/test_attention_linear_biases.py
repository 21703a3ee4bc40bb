"""What must be true of AttentionLinearBiases: heads have the slopes that the
paper prints, and a logit falls in proportion to the distance on both sides."""

import numpy as np
import pytest

from keras_deepnmt.layers import AttentionLinearBiases

B, T, S, H = 2, 5, 7, 3

# For 8 heads as the paper prints them (Section 3). The others are those of the
# authors' function, whose doubled number of heads fills the gap.
SLOPES = {
    1: [1 / 256],
    2: [1 / 16, 1 / 256],
    3: [1 / 16, 1 / 256, 1 / 4],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],
    12: [2.0**-n for n in range(1, 9)]
    + [2.0**-n for n in (0.5, 1.5, 2.5, 3.5)],
}


@pytest.mark.parametrize("num_heads", SLOPES)
def test_matches_the_equation(num_heads):
    random = np.random.default_rng(0)
    logits = random.normal(size=(B, num_heads, T, S)).astype("float32")
    distances = np.arange(S) - np.arange(T)[:, None]
    found = AttentionLinearBiases().add_to_logits(logits, None, distances)
    expected = logits.copy()
    for n, slope in enumerate(SLOPES[num_heads]):
        for t in range(T):
            for s in range(S):
                expected[:, n, t, s] -= slope * abs(t - s)
    np.testing.assert_allclose(found, expected, atol=1e-6)
