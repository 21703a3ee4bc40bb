"""What must be true of activation checkpointing: each block is computed twice,
with the same dropout; updates, losses of layers and random states are those of
training without it; less is kept for the backward pass; the option is saved
with the model, and refused for a model without blocks."""

import catalog
import keras
import numpy as np
import pytest
from test_training_step import dataset_of

from keras_deepnmt.layers import (
    FeedForward,
    MultiHeadAttention,
    TransformerEncoderBlock,
)
from keras_deepnmt.models import Seq2Seq
from keras_deepnmt.models.training_step.training_state import seed_variables

ENTRIES = {entry.name: entry for entry in catalog.MODELS}
PLAIN = catalog.MODELS[1]
DROPOUT = {"dropout": 0.3}


@keras.saving.register_keras_serializable(package="checkpointing")
class PenalizedAttention(MultiHeadAttention):
    """Adds a loss in the middle of a block."""

    def call(self, query, *args, **kwargs):
        output = super().call(query, *args, **kwargs)
        if not isinstance(output, tuple):
            self.add_loss(0.01 * keras.ops.mean(keras.ops.square(output)))
        return output


def updated(entry, is_on, overrides, dtype=None, **options):
    """Weights and random states after an update, and its loss."""
    keras.utils.set_random_seed(3)
    # Two blocks of each side, one above the other.
    model = entry.make(**overrides, dtype=dtype)
    model.compile(
        keras.optimizers.SGD(0.5),
        activation_checkpointing=is_on,
        **{"run_eagerly": True} | options,
    )
    batch = entry.example(rows=4)
    history = model.fit(dataset_of(batch), verbose=0).history
    seeds = [np.asarray(seed) for seed in seed_variables(model)]
    return model.get_weights(), seeds, history["loss"]


def assert_same_updates(entry, overrides, tolerance=1e-6, **options):
    weights, seeds, loss = updated(entry, False, overrides, **options)
    again, seeds_again, loss_again = updated(entry, True, overrides, **options)
    np.testing.assert_allclose(loss_again, loss, rtol=tolerance)
    for one, other in zip(weights, again, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)
    for one, other in zip(seeds, seeds_again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_updates_with_dropout_are_those_without_it():
    overrides = DROPOUT | {"attention_dropout": 0.2}
    assert_same_updates(PLAIN, overrides)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {"jit_compile": False},
        {"jit_compile": True},
        {"jit_compile": True, "gradient_accumulation_steps": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "name", ["transformer_tiny", "every slot", "conv_seq2seq_tiny"]
)
def test_compiled_updates_are_those_without_it(name, options):
    options = {"run_eagerly": False, **options}
    assert_same_updates(ENTRIES[name], DROPOUT, 1e-5, **options)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "dtype, tolerance", [("mixed_bfloat16", 1e-3), ("mixed_float16", 1e-4)]
)
def test_updates_in_half_precision_are_those_without_it(dtype, tolerance):
    # The gradients of a block's input are added up in another order.
    assert_same_updates(PLAIN, DROPOUT, tolerance, dtype=dtype)


@pytest.mark.thorough
def test_a_loss_in_a_block_counts_once():
    overrides = {"encoder_self_attention": PenalizedAttention(2), **DROPOUT}
    assert_same_updates(PLAIN, overrides)
    plain, *_ = updated(PLAIN, True, DROPOUT)
    penalized, *_ = updated(PLAIN, True, overrides)
    apart = max(
        np.abs(one - other).max()
        for one, other in zip(plain, penalized, strict=True)
    )
    assert apart > 1e-5


def test_each_block_is_computed_again_in_training_only(monkeypatch):
    calls = []
    plain_call = FeedForward.call

    def counted(self, inputs):
        calls.append(self.path)
        return plain_call(self, inputs)

    model = PLAIN.make()
    model.compile("sgd", run_eagerly=True, activation_checkpointing=True)
    monkeypatch.setattr(FeedForward, "call", counted)
    inputs, labels = PLAIN.example()
    model.train_on_batch(inputs, labels)
    blocks = [*model.encoder_blocks, *model.decoder_blocks]
    assert len(calls) == 2 * len(blocks) == 2 * len(set(calls))
    del calls[:]
    model.test_on_batch(inputs, labels)
    assert len(calls) == len(blocks)
    model.compile("sgd", run_eagerly=True)
    model.train_on_batch(inputs, labels)
    assert len(calls) == 2 * len(blocks)


class MaskReader(keras.layers.Layer):
    """Returns the mask that Keras passes on, as numbers."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return keras.ops.cast(mask, "float32")


def test_masks_of_keras_go_through_a_block():
    block = TransformerEncoderBlock(2, 16, dropout=0.0)
    rows = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
    rows[0, 3:] = 0.0
    masked = keras.layers.Masking()(rows)
    expected = block(masked, training=True)
    mask = MaskReader()(expected)
    np.testing.assert_array_equal(mask, [[1, 1, 1, 0, 0], [1] * 5])
    block.recomputes_activations = True
    again = block(masked, training=True)
    np.testing.assert_allclose(again, expected, 1e-5, 1e-6)
    np.testing.assert_array_equal(MaskReader()(again), mask)


def test_the_option_is_saved_with_the_model(tmp_path):
    model = PLAIN.make()
    model.compile("sgd")
    assert "activation_checkpointing" not in model.get_compile_config()
    model.compile("sgd", activation_checkpointing=True)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.activation_checkpointing
    assert again.encoder_blocks[0].recomputes_activations


def test_a_model_without_blocks_refuses_it():
    inputs = keras.Input((3,))
    model = Seq2Seq(inputs=inputs, outputs=keras.layers.Dense(5)(inputs))
    with pytest.raises(ValueError, match="Seq2Seq, which has none"):
        model.compile("sgd", activation_checkpointing=True)
