"""A projection to logits that is prepared once gives the model's own scores."""

import numpy as np
import pytest

from keras_deepnmt.masks import PADDING_ID
from keras_deepnmt.models.projected_model import prepare_projection

B, S, T = 2, 6, 4


@pytest.mark.parametrize("num_states", [1, B, None])
def test_scores_are_those_of_the_model(model, model_entry, num_states):
    inputs, _ = model_entry.example(B, S, T)
    prepared = prepare_projection(model, num_states)
    memory = prepared.encode(inputs["source_ids"])
    expected = np.asarray(model.decode(inputs["target_ids"], memory))
    tolerance = 1e-5 * max(1.0, np.abs(expected).max())
    found = prepared.decode(inputs["target_ids"], memory)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    # An aggregation's attention leaves padding out where it sees all at once.
    is_real = inputs["target_ids"] != PADDING_ID
    cache = prepared.init_cache(memory, T)
    for t in range(T):
        found, cache = prepared.decode(
            inputs["target_ids"][:, t : t + 1], memory, cache, t
        )
        np.testing.assert_allclose(
            np.asarray(found)[:, 0][is_real[:, t]],
            expected[:, t][is_real[:, t]],
            rtol=0,
            atol=tolerance,
        )
