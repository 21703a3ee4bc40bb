"""Every weight learns under every dtype policy, and nothing overflows."""

import catalog
import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance_checks import assert_every_weight_moved

from keras_deepnmt.models import Transformer
from keras_deepnmt.xla import tuned

HALF = ["mixed_bfloat16", "mixed_float16"]
DTYPES = ["float32", *HALF]


def ways():
    """Every layer in every dtype, operation by operation and by XLA.

    By default each layer has its turn in one half precision. With `-m thorough`
    it has all dtypes, and XLA compiles it in one, which changes; `-m slow` has
    the others, by the same compiler.
    """
    for number, entry in enumerate(catalog.LAYERS):
        for place, dtype in enumerate(DTYPES):
            name = f"{catalog.identify(entry)}-{dtype}"
            is_its_turn = dtype == HALF[number % len(HALF)]
            yield pytest.param(
                *(entry, dtype, False),
                id=name,
                marks=() if is_its_turn else pytest.mark.thorough,
            )
            is_compiled = number % len(DTYPES) == place
            yield pytest.param(
                *(entry, dtype, True),
                id=f"{name}-compiled",
                marks=pytest.mark.thorough if is_compiled else pytest.mark.slow,
            )


@pytest.mark.parametrize("entry, dtype, jit_compile", list(ways()))
def test_a_layer_computes_in_its_dtype_and_learns(entry, dtype, jit_compile):
    keras.utils.set_random_seed(1)  # no gate starts dead
    model = entry.functional(dtype=dtype)
    inputs = entry.example()
    compute_dtype = keras.DTypePolicy(dtype).compute_dtype
    assert model.output.dtype == (entry.output_dtype or compute_dtype)

    def step():
        with tf.GradientTape() as tape:
            output = model(inputs, training=True)
            loss = tf.reduce_sum(tf.cast(output, "float32") ** 3)
        return output, tape.gradient(loss, model.trainable_weights)

    if jit_compile:
        step = tf.function(step, jit_compile=True)
    output, gradients = step()
    assert np.all(np.isfinite(tf.cast(output, "float32")))
    for weight, gradient in zip(
        model.trainable_weights, gradients, strict=True
    ):
        assert weight.dtype == "float32"
        gradient = tf.convert_to_tensor(gradient)  # a table's is sparse
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient != 0), weight.path


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", HALF)
def test_a_model_learns_in_half_precision(model_entry, dtype):
    keras.utils.set_random_seed(1)
    model = model_entry.make(dtype=dtype, dropout=0.0)
    # XLA in half precision is proven on the layers.
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    inputs, labels = model_entry.example()
    scores = model(inputs)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    assert model.output.dtype == "float32"
    log_probs = model.log_probs(scores)
    assert keras.backend.standardize_dtype(log_probs.dtype) == "float32"
    before = model.get_weights()
    # Float16 needs a few updates to find the scale of its loss.
    epochs = 12 if dtype == "mixed_float16" else 2
    history = model.fit(inputs, labels, batch_size=4, epochs=epochs, verbose=0)
    logs = history.history
    assert np.all(np.isfinite(logs["loss"]))
    assert logs["loss"][-1] < logs["loss"][0]
    assert_every_weight_moved(before, model)
    assert_steps_equal_all_at_once(model, inputs)


def assert_steps_equal_all_at_once(model, inputs):
    """Decodes step by step, as a search does, and keeps the types of caches."""
    memory = model.encode(inputs["source_ids"])
    target_ids = inputs["target_ids"]
    expected = np.asarray(model.decode(target_ids, memory))
    length = target_ids.shape[1]
    cache = model.init_cache(memory, length)
    for t in range(length):
        ids = target_ids[:, t : t + 1]
        scores, after = model.decode(ids, memory, cache, t)
        for old, new in zip(
            keras.tree.flatten(cache), keras.tree.flatten(after), strict=True
        ):
            assert old.dtype == new.dtype
        cache = after
        # Bfloat16 has 8 bits; padding may differ.
        is_token = target_ids[:, t] != 0
        np.testing.assert_allclose(
            np.asarray(scores)[is_token, 0],
            expected[is_token, t],
            rtol=0,
            atol=0.05 * np.abs(expected).max(),
        )


@pytest.mark.parametrize("tie_output_embedding", [True, False])
@pytest.mark.parametrize("dtype", HALF)
def test_training_and_searches_multiply_by_the_vocabulary_in_one_type(
    dtype, tie_output_embedding
):
    keras.utils.set_random_seed(1)
    model = Transformer(
        *(11, 13, 8, 16, 2, 1, 1),
        tie_output_embedding=tie_output_embedding,
        dtype=dtype,
    )
    assert model.output.dtype == "float32"

    def assert_is_rounded(logits):
        """A product with float32 weights has digits that this type lacks."""
        assert keras.backend.standardize_dtype(logits.dtype) == "float32"
        rounded = keras.ops.cast(logits, model.compute_dtype)
        rounded = keras.ops.cast(rounded, "float32")
        np.testing.assert_array_equal(logits, rounded)

    # As in `fit`, which calls the model as a whole.
    ids = np.array([[2, 5, 6, 7]])
    assert_is_rounded(model({"source_ids": ids, "target_ids": ids}))
    states = keras.random.normal((3, 8), dtype=model.compute_dtype, seed=1)
    logits = model.project(states)
    assert_is_rounded(logits)
    few = model.projection_to(keras.ops.arange(13))(states)
    np.testing.assert_array_equal(few, logits)
    if tie_output_embedding:
        repeated = model.repeated_projection(tuned.FEW_STATES[0])(states)
        np.testing.assert_array_equal(repeated, logits)
