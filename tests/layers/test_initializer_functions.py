"""What must be true of a function that is given as an initializer: it serves as
one of Keras does, in layers and models, and is kept if it is registered."""

import json

import keras
import numpy as np
import pytest

from keras_deepnmt import layers
from keras_deepnmt.models import Transformer

D, V = 8, 11
BLOCKS = {
    "encoder block": layers.TransformerEncoderBlock,
    "decoder block": layers.TransformerDecoderBlock,
}
# How a layer is made with the initializer, and the shapes of its inputs.
CASES = {
    **{
        f"{name}, {argument}": (
            lambda function, block=block, argument=argument: block(
                2, 16, **{argument: function}
            ),
            [(None, None, D)],
        )
        for name, block in BLOCKS.items()
        for argument in ("attention_initializer", "kernel_initializer")
    },
    "block with another attention": (
        lambda function: layers.TransformerEncoderBlock(
            2,
            16,
            self_attention=layers.HybridSelfAttention(2, gate_reduction=1),
            attention_initializer=function,
        ),
        [(None, None, D)],
    ),
    "aggregation node": (
        lambda function: layers.AggregationNode(
            "attention", attention_initializer=function
        ),
        [[(None, None, D)] * 2],
    ),
    "layer aggregation": (
        lambda function: layers.LayerAggregation(
            "hierarchical", "attention", attention_initializer=function
        ),
        [[(None, None, D)] * 2],
    ),
    "multi-layer attention": (
        lambda function: layers.MultiLayerAttention(
            2, attention_initializer=function
        ),
        [(None, None, D)],
    ),
    "surface fusion": (
        lambda function: layers.SurfaceFusion(attention_initializer=function),
        [(None, None, D)],
    ),
    **{
        f"role interaction, {rank_one=}": (
            lambda function, rank_one=rank_one: layers.RoleInteraction(
                2, rank_one=rank_one, output_initializer=function
            ),
            [(None, None, D)],
        )
        for rank_one in (False, True)
    },
    "contextualized embedding": (
        lambda function: layers.ContextualizedEmbedding(
            2, output_initializer=function
        ),
        [(None, None, D)],
    ),
}


@keras.saving.register_keras_serializable(package="tests")
def twos(shape, dtype=None):
    return keras.ops.full(shape, 2.0, dtype)


def are_twos(owner):
    return [bool(np.all(np.asarray(weight) == 2)) for weight in owner.weights]


@pytest.mark.parametrize("name", CASES)
def test_a_function_serves_as_an_initializer_of_keras_does(name):
    make, shapes = CASES[name]
    by_function, by_keras = make(twos), make(keras.initializers.Constant(2.0))
    for layer in (by_function, by_keras):
        layer.build(*shapes)
    found = are_twos(by_function)
    assert found == are_twos(by_keras)
    assert any(found) and not all(found)
    # As a file has it.
    config = json.dumps(keras.saving.serialize_keras_object(by_function))
    again = keras.saving.deserialize_keras_object(json.loads(config))
    again = type(again).from_config(again.get_config())
    again.build(*shapes)
    assert are_twos(again) == found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "argument", ["attention_initializer", "kernel_initializer"]
)
def test_a_function_serves_a_model(argument, tmp_path):
    model, by_keras = (
        Transformer(V, V, D, 16, 2, 1, 1, **{argument: initializer})
        for initializer in (twos, keras.initializers.Constant(2.0))
    )
    found = are_twos(model)
    assert found == are_twos(by_keras) and any(found)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert are_twos(loaded) == found
