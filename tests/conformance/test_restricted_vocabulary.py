"""With a part of the target vocabulary a model scores that part as before."""

import numpy as np

from keras_deepnmt.models.restricted_vocabulary import restrict_vocabulary

B, S, T = 2, 6, 4


def part_of(size):
    """The special ids and every third other id."""
    return np.array([0, 1, 2, 3, *range(5, size, 3)], "int32")


def test_probabilities_are_those_given_that_a_token_is_in_the_part(
    model, model_entry
):
    inputs, _ = model_entry.example(B, S, T)
    ids = part_of(model.target_vocabulary_size)
    restricted = restrict_vocabulary(model, ids)
    numbers = np.random.default_rng(1).integers(4, len(ids), (B, T))
    memory = model.encode(inputs["source_ids"])
    found = restricted.decode(numbers, restricted.encode(inputs["source_ids"]))
    full = np.asarray(model.decode(ids[numbers], memory))
    assert found.shape == (B, T, len(ids))
    if model.output_fusion is None:
        tolerance = 1e-5 * max(1.0, np.abs(full).max())
        np.testing.assert_allclose(
            found, full[..., ids], rtol=0, atol=tolerance
        )
    # Also where two distributions are fused.
    log_probs = np.asarray(restricted.log_probs(found), "float64")
    sums = np.exp(log_probs).sum(-1)
    if model.output_fusion is None:
        np.testing.assert_allclose(sums, 1.0, atol=1e-4)
    assert np.isfinite(log_probs).all()


def test_step_by_step_equals_all_at_once(model, model_entry):
    inputs, _ = model_entry.example(B, S, T)
    ids = part_of(model.target_vocabulary_size)
    restricted = restrict_vocabulary(model, ids)
    numbers = np.random.default_rng(2).integers(4, len(ids), (B, T))
    memory = restricted.encode(inputs["source_ids"])
    expected = np.asarray(restricted.decode(numbers, memory))
    cache = restricted.init_cache(memory, T)
    for t in range(T):
        scores, cache = restricted.decode(
            numbers[:, t : t + 1], memory, cache, t
        )
        np.testing.assert_allclose(
            scores[:, 0],
            expected[:, t],
            rtol=0,
            atol=1e-5 * max(1.0, np.abs(expected).max()),
        )


def test_the_whole_vocabulary_changes_nothing(model, model_entry):
    inputs, _ = model_entry.example(B, S, T)
    ids = np.arange(model.target_vocabulary_size, dtype="int32")
    restricted = restrict_vocabulary(model, ids)
    targets, memory = inputs["target_ids"], model.encode(inputs["source_ids"])
    expected = np.asarray(model.decode(targets, memory))
    np.testing.assert_allclose(
        restricted.decode(targets, memory),
        expected,
        rtol=0,
        atol=1e-5 * max(1.0, np.abs(expected).max()),
    )
