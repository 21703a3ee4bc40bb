"""Decoding step by step with a cache equals scoring all at once."""

import keras
import numpy as np
import tensorflow as tf

from keras_deepnmt.decoding.caches import reorder_cache

B, K, S, T = 3, 3, 7, 5


def tolerance(scores):
    return 1e-5 * max(1.0, np.abs(scores).max())


def stepper(model):
    """One traced step, as the search runs it."""

    @tf.function(reduce_retracing=True)
    def step(target_ids, memory, cache, index):
        return model.decode(target_ids, memory, cache, index)

    return lambda ids, memory, cache, index: step(
        tf.constant(ids), memory, cache, tf.constant(index)
    )


def hypotheses(entry, seed):
    """Targets of B * K hypotheses, all real tokens; sources of B sentences."""
    inputs, _ = entry.example(B, S, T)
    random = np.random.default_rng(seed)
    vocabulary_size = entry.vocabulary_sizes[1]
    targets = random.integers(4, vocabulary_size, (B * K, T)).astype("int32")
    targets[:, 0] = 2
    return inputs["source_ids"], targets


def test_one_hypothesis_a_sentence(model, model_entry):
    source_ids, targets = hypotheses(model_entry, seed=1)
    targets = targets[::K]
    memory = model.encode(source_ids)
    expected = np.asarray(model.decode(targets, memory))
    # A longer cache than the sentence needs must not matter.
    cache = model.init_cache(memory, max_length=T + 2)
    step = stepper(model)
    for t in range(T):
        scores, cache = step(targets[:, t : t + 1], memory, cache, t)
        np.testing.assert_allclose(
            scores[:, 0], expected[:, t], rtol=0, atol=tolerance(expected)
        )


def test_beams_that_change_places(model, model_entry):
    source_ids, targets = hypotheses(model_entry, seed=2)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length=T, num_beams=K)
    step = stepper(model)
    random = np.random.default_rng(3)
    history = targets[:, :0]
    steps = []
    for t in range(T):
        history = np.concatenate([history, targets[:, t : t + 1]], axis=1)
        scores, cache = step(history[:, t : t + 1], memory, cache, t)
        steps.append((history, np.asarray(scores)[:, 0]))
        # As in a search: a beam may be taken twice, another one dropped.
        parents = random.integers(0, K, (B, K)).astype("int32")
        history = history[(parents + K * np.arange(B)[:, None]).ravel()]
        cache = {**cache, **reorder_cache(cache, parents, t)}
    repeated = model.encode(np.repeat(source_ids, K, axis=0))
    for history, scores in steps:
        expected = np.asarray(model.decode(history, repeated))[:, -1]
        np.testing.assert_allclose(
            scores, expected, rtol=0, atol=tolerance(expected)
        )


def test_a_step_reads_nothing_of_the_source_but_what_was_computed_once(
    model, model_entry
):
    source_ids, targets = hypotheses(model_entry, seed=5)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length=T, num_beams=K)
    poisoned = keras.tree.map_structure(
        lambda state: state * np.nan if is_float(state) else state, memory
    )
    found, expected = (
        np.asarray(model.decode(targets[:, :1], each, cache, 0)[0])
        for each in (poisoned, memory)
    )
    np.testing.assert_array_equal(found, expected)


def is_float(state):
    return "float" in keras.backend.standardize_dtype(state.dtype)


def test_hypotheses_that_share_no_history(model, model_entry):
    # As in sampling: a row of the history for each hypothesis.
    source_ids, targets = hypotheses(model_entry, seed=6)
    memory = model.encode(source_ids)
    repeated = model.encode(np.repeat(source_ids, K, axis=0))
    expected = np.asarray(model.decode(targets, repeated))
    cache = model.init_cache(repeated, max_length=T)
    cache["static"] = model.init_cache(memory, T, num_beams=K)["static"]
    step = stepper(model)
    for t in range(T):
        scores, cache = step(targets[:, t : t + 1], memory, cache, t)
        np.testing.assert_allclose(
            scores[:, 0], expected[:, t], rtol=0, atol=tolerance(expected)
        )


def test_rows_of_the_parts_of_a_cache(model, model_entry):
    source_ids, targets = hypotheses(model_entry, seed=4)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length=T, num_beams=K)
    assert set(cache) == {"static", "dynamic", "history"}
    for tensor in keras.tree.flatten(memory):
        assert tensor.shape[0] == B
    _, after = model.decode(targets[:, :1], memory, cache, 0)
    assert set(after) == {"static", "dynamic", "history"}
    for state in (cache, after):
        for tensor in keras.tree.flatten(state["static"]):
            assert tensor.shape[0] == B
        for tensor in keras.tree.flatten(state["dynamic"]):
            assert tensor.shape[0] == B * K
        for path, tensor in keras.tree.flatten_with_path(state["history"]):
            num_slots = T if "ancestors" in path else T * K
            assert tensor.shape[0] == B
            assert tensor.shape[2] == num_slots
    keras.tree.assert_same_structure(cache, after)
    for old, new in zip(
        keras.tree.flatten(cache), keras.tree.flatten(after), strict=True
    ):
        assert old.shape == new.shape
        assert old.dtype == new.dtype
