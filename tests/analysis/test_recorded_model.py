"""What must be true of `record`, the second forward pass with names.

* it returns the layers' tensors: attention sums to 1, and the last state is the
  one that the model projects
* it shares the weights, drops nothing, and leaves the model as it was
* it works compiled, in `predict`, and for every kind of layer
"""

import keras
import numpy as np
import pytest
from keras import ops

import keras_deepnmt
from keras_deepnmt.analysis import record, recorded_names

V = 23


def make(preset="transformer_tiny", **options):
    keras.utils.set_random_seed(3)
    return keras_deepnmt.create_model(preset, V, V, **options)


def ids(rows=2, source=5, target=4):
    generator = np.random.default_rng(0)
    source_ids = generator.integers(4, V, (rows, source)).astype("int32")
    source_ids[0, -2:] = 3, 0
    target_ids = generator.integers(4, V, (rows, target)).astype("int32")
    target_ids[:, 0] = 2
    return {"source_ids": source_ids, "target_ids": target_ids}


@pytest.fixture(scope="module")
def model():
    return make(num_encoder_layers=2, num_decoder_layers=2, dropout=0.5)


def test_attention_weights_sum_to_one_over_the_real_source(model):
    inputs = ids()
    outputs = record(model, "*/cross_attention/weights")(inputs)
    assert list(outputs) == [
        f"decoder_block_{n}/cross_attention/weights" for n in (1, 2)
    ]
    for weights in map(ops.convert_to_numpy, outputs.values()):
        assert weights.shape == (2, 4, 4, 5)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
        # The padding of the first sentence.
        np.testing.assert_array_equal(weights[0, ..., 4], 0)
        assert (weights[1, ..., 4] > 0).all()


def test_the_last_state_is_what_the_model_projects(model):
    inputs = ids()
    outputs = record(model, ["decoder_block_2/output"])(inputs)
    (state,) = outputs.values()
    np.testing.assert_allclose(
        model.project(state), model(inputs, training=False), atol=1e-5
    )


def test_it_follows_the_weights_and_leaves_the_model_alone(model):
    inputs = ids()
    before = ops.convert_to_numpy(model(inputs, training=False))
    recorded = record(model, "encoder_block_1/output")
    first = ops.convert_to_numpy(recorded(inputs)["encoder_block_1/output"])
    # No dropout, even if requested: an analysis is of one function.
    again = ops.convert_to_numpy(
        recorded(inputs, training=True)["encoder_block_1/output"]
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(model(inputs, training=False), before)
    weights = model.get_weights()
    model.set_weights([weight * 1.5 for weight in weights])
    other = ops.convert_to_numpy(recorded(inputs)["encoder_block_1/output"])
    assert np.abs(other - first).max() > 1e-3
    model.set_weights(weights)


def test_predict_compiles_it_and_gives_all_batches(model):
    inputs = ids(rows=6)
    recorded = record(model, "*/output")
    found = recorded.predict(inputs, batch_size=2, verbose=0)
    expected = recorded(inputs)
    assert list(found) == list(expected)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5)


@pytest.mark.thorough
def test_every_part_of_the_papers_layers_has_a_name():
    names = recorded_names(make("everything_tiny"))
    for expected in (
        "source_embedding_layer/roles/roles",
        "encoder_block_1/attention/gate_local_2",
        "encoder_block_3/attention/lower_2/weights",
        "encoder_block_3/attention/node/output",
        "encoder_aggregation/node_1/output",
        "decoder_block_4/cross_attention/weights",
        "output_fusion/attention/weights",
    ):
        assert expected in names
    assert len(names) == len(set(names))
    names = recorded_names(make("dense_nmt_1_tiny"))
    assert "decoder_block_1/attention/weights" in names
    assert "encoder_block_4/output" in names


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("preset", "pattern"),
    [
        ("everything_tiny", "*/gate_*"),
        ("role_interaction_softmax_tiny", "*/roles"),
        ("role_interaction_onehot_tiny", "*/roles"),
    ],
)
def test_gates_and_roles_are_shares(preset, pattern):
    for name, value in record(make(preset), pattern)(ids()).items():
        value = ops.convert_to_numpy(value)
        assert value.min() >= 0 and value.max() <= 1, name
        if name.endswith("roles"):
            np.testing.assert_allclose(value.sum(-1), 1, atol=1e-5)


def test_a_layer_that_is_called_twice_has_two_names():
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.attention = keras_deepnmt.layers.MultiHeadAttention(1)

        def call(self, inputs, training=None):
            x = ops.one_hot(inputs["target_ids"], 8)
            return self.attention(self.attention(x))

    names = recorded_names(Twice())
    assert [name.rsplit("/", 1)[1] for name in names] == [
        *("weights", "weights_2"),
    ]


def test_an_unknown_name_is_refused_with_those_there_are(model):
    with pytest.raises(ValueError, match=r"Received: \*/gates\. The model has"):
        record(model, ["*/output", "*/gates"])
