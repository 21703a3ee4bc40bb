"""What must be true of the lens.

* its last layer is the model itself
* a block that changes nothing predicts as the one below
* it needs the logits of a batch of sentences, not of all of them
* blocks that the output layer cannot read are refused
"""

import sys

import keras
import numpy as np
import pytest

import keras_deepnmt
from keras_deepnmt.analysis import layer_lens

V = 19


def setting(preset="transformer_tiny", **options):
    keras.utils.set_random_seed(5)
    options = {"num_encoder_layers": 1, **options}
    model = keras_deepnmt.create_model(preset, V, V, **options)
    generator = np.random.default_rng(0)
    inputs = {
        "source_ids": generator.integers(4, V, (3, 5)),
        "target_ids": generator.integers(4, V, (3, 6)),
    }
    labels = generator.integers(4, V, (3, 6))
    labels[0, 4:] = 0
    return model, inputs, labels


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {"normalize_first": False},
        {"normalize_first": True},
        {"preset": "conv_seq2seq_tiny"},
        {"preset": "conv_seq2seq_tiny", "embedding_dim": 24},
    ],
)
def test_the_last_block_predicts_what_the_model_does(options):
    model, inputs, labels = setting(num_decoder_layers=3, **options)
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
    # Pre-norm: a block adds the outputs of its sublayers, here zeros.
    for variable in model.decoder_blocks[1].trainable_variables:
        variable.assign(0.0 * variable)
    lens = layer_lens(model, inputs, labels)
    first, second = lens.values()
    assert first["log_prob"] == pytest.approx(second["log_prob"], abs=1e-6)


def test_batches_of_sentences_give_what_all_of_them_give(monkeypatch):
    model, inputs, labels = setting(num_decoder_layers=2)
    whole = layer_lens(model, inputs, labels)
    sizes, project = [], model.project

    def counted(states):
        sizes.append(len(states))
        return project(states)

    monkeypatch.setattr(model, "project", counted)
    module = "keras_deepnmt.analysis.layer_lens"
    monkeypatch.setattr(sys.modules[module], "BATCH", 2)
    batched = layer_lens(model, inputs, labels)
    assert sizes == [2, 2, 1, 1]
    for block, found in whole.items():
        assert batched[block] == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "received"),
    [
        (
            # The input, and from each block its output and its attention's.
            {"decoder_connection": "dense", "hidden_dim": 16, "growth_dim": 5},
            "decoder_block_1 of width 5, and `decoder_output` reads 36",
        ),
        (
            {"hidden_dim": [16, 24], "num_encoder_layers": 2},
            "decoder_block_1 of width 16, and `decoder_output` reads 24",
        ),
    ],
)
def test_blocks_of_another_width_are_refused(options, received):
    model, inputs, labels = setting(
        "conv_seq2seq_tiny", num_decoder_layers=2, **options
    )
    with pytest.raises(ValueError, match=received):
        layer_lens(model, inputs, labels)
