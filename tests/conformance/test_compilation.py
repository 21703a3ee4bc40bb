"""XLA, graph and eager give the same numbers.

Of layers the graph is that of `test_saved_model.py`, which by default has those
layers that are not compiled here.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance_checks import layers_in_turn


@pytest.mark.parametrize("layer_entry", layers_in_turn(0))
def test_a_layer_gives_the_same_compiled(layer_entry):
    layer = layer_entry.make()
    inputs = layer_entry.example()

    def call():
        return layer(**inputs, **layer_entry.arguments)

    eager = call()
    compiled = tf.function(call, jit_compile=True)
    for found, expected in zip(
        keras.tree.flatten(compiled()),
        keras.tree.flatten(eager),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_gives_the_same_in_every_way(model, graph, model_entry):
    inputs, _ = model_entry.example()
    eager = model.log_probs(model(inputs)).numpy()
    np.testing.assert_allclose(graph(inputs), eager, atol=1e-5)
    compiled = tf.function(
        lambda: model.log_probs(model(inputs)), jit_compile=True
    )
    np.testing.assert_allclose(compiled(), eager, atol=1e-5)


@pytest.mark.thorough
def test_the_functional_graph_is_encode_and_decode(model, graph, model_entry):
    inputs, _ = model_entry.example()
    memory = model.encode(inputs["source_ids"])
    scores = model.decode(inputs["target_ids"], memory)
    np.testing.assert_allclose(
        graph(inputs), model.log_probs(scores), atol=1e-5
    )
