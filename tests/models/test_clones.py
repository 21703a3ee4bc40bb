"""A model and Keras' clone of it have their weights in one order.

* a clone with the weights of a model gives its logits, for every tiny preset
* an average of weights that Keras' optimizers keep ends in the right weights
* the state of an optimizer has the order that files of earlier versions have
"""

import keras
import numpy as np
import pytest

from keras_deepnmt import zoo

# A layer in every slot of `Transformer`, and the other backbone.
FEW = ("everything_tiny", "dense_nmt_2_tiny")
ALL = [name for name in zoo.list_models("*_tiny") if name not in FEW]
INPUTS = {
    "source_ids": np.array([[5, 6, 7, 3], [8, 9, 3, 0]], "int32"),
    "target_ids": np.array([[2, 17, 16], [2, 18, 0]], "int32"),
}


def different_weights(model):
    """Values of which no two are equal, also of weights of one shape."""
    draw = np.random.default_rng(3)
    return [draw.normal(size=w.shape) / 8 for w in model.get_weights()]


@pytest.mark.parametrize(
    "name",
    [*FEW, *(pytest.param(name, marks=pytest.mark.thorough) for name in ALL)],
)
def test_a_clone_with_a_models_weights_gives_its_logits(name):
    model = zoo.create_model(
        name, 19, 19, num_encoder_layers=2, num_decoder_layers=2
    )
    model.set_weights(different_weights(model))
    clone = keras.models.clone_model(model)
    assert [w.path for w in model.weights] == [w.path for w in clone.weights]
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(INPUTS), model(INPUTS), atol=1e-6)


@pytest.fixture(scope="module")
def small():
    return zoo.create_model(
        "transformer_tiny",
        19,
        19,
        hidden_dim=8,
        intermediate_dim=8,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        share_embeddings=False,
    )


def test_averages_of_an_optimizer_end_in_their_own_weights(small):
    before = {w.path: w.numpy() for w in small.weights}
    optimizer = keras.optimizers.SGD(0.0, use_ema=True)
    small.compile(optimizer, jit_compile=False, run_eagerly=True)
    small.fit(INPUTS, INPUTS["target_ids"], verbose=0)
    for weight in small.weights:
        np.testing.assert_array_equal(weight, before[weight.path])


def test_the_state_of_an_optimizer_has_the_order_of_earlier_files(small):
    layers = [v.path.split("/")[0] for v in small.trainable_variables]
    assert list(dict.fromkeys(layers)) == [
        "source_embedding",
        "target_embedding",
        "encoder_block_1",
        "decoder_block_1",
    ]
    weights = [w.path for w in small.weights]
    assert [v.path for v in small.trainable_weights] != weights
    assert sorted(v.path for v in small.trainable_weights) == sorted(weights)
