"""What must be true of the lens: its last layer is the model itself."""

import keras
import numpy as np
import pytest

import keras_deepnmt
from keras_deepnmt.analysis import layer_lens

V = 19


def setting(**options):
    keras.utils.set_random_seed(5)
    model = keras_deepnmt.create_model(
        "transformer_tiny", V, V, num_encoder_layers=1, **options
    )
    generator = np.random.default_rng(0)
    inputs = {
        "source_ids": generator.integers(4, V, (3, 5)),
        "target_ids": generator.integers(4, V, (3, 6)),
    }
    labels = generator.integers(4, V, (3, 6))
    labels[0, 4:] = 0
    return model, inputs, labels


@pytest.mark.parametrize("normalize_first", [False, True])
def test_the_last_block_predicts_what_the_model_does(normalize_first):
    model, inputs, labels = setting(
        num_decoder_layers=3, normalize_first=normalize_first
    )
    lens = layer_lens(model, inputs, labels)
    assert list(lens) == [f"decoder_block_{n}" for n in (1, 2, 3)]
    scores = model(inputs, training=False)
    log_probs = np.asarray(keras.ops.log_softmax(scores, axis=-1))
    of_labels = np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    real = labels != 0
    last = lens["decoder_block_3"]
    assert last["log_prob"] == pytest.approx(of_labels[real].mean(), abs=1e-5)
    right = log_probs.argmax(-1) == labels
    assert last["accuracy"] == pytest.approx(right[real].mean())
    assert lens["decoder_block_1"] != last


def test_a_block_that_changes_nothing_predicts_as_the_one_below():
    model, inputs, labels = setting(num_decoder_layers=2, normalize_first=True)
    # Pre-norm: a block adds what its sublayers give, here nothing.
    for variable in model.decoder_blocks[1].trainable_variables:
        variable.assign(0.0 * variable)
    lens = layer_lens(model, inputs, labels)
    first, second = lens.values()
    assert first["log_prob"] == pytest.approx(second["log_prob"], abs=1e-6)
