"""What must be true of ConvSeq2Seq: widths, slices and parameters are those of
the paper's models, exactly; the attention reads what the paper says; options
that do not fit are refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.models import ConvSeq2Seq
from keras_deepnmt.zoo import create_model

V = 17
IDS = np.array([[5, 6, 7, 5, 3], [8, 9, 3, 0, 0]], "int32")


def counted(name, *sizes, **overrides):
    """A model whose weights have shapes and no values."""
    with tf.Graph().as_default():
        return create_model(name, *(sizes or (V, V)), **overrides)


def widths_read(blocks):
    return [block.convolution.width for block in blocks]


def slices(model):
    projections = model.attention_memory.projections
    return [projection.direction.shape[0] for projection in projections]


SIX = [512, 640, 768, 896, 1024]
WIDTHS = {
    # size: what encoder layers read, what the stack gives, its slices,
    # what decoder layers read, what the stack gives
    "4l": (
        [256, 384, 512, 640],
        768,
        [128, 128, 128, 128, 256],
        [256, 512, 768, 1024],
        1280,
    ),
    "8l": (
        [192, 288, 384, 480, 576, 672, 192, 288],
        384,
        [96, 96, 192],
        [192, 384, 576, 768, 960, 1152, 192, 384],
        576,
    ),
    "15l": (
        [*SIX, 1152, *SIX, 1280, 1024, 1280, 1792],
        2304,
        [512, 512, 256, 1024],
        None,
        None,
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "size",
    [size if size == "15l" else size for size in WIDTHS],
)
def test_dense_stacks_are_as_wide_as_in_the_paper(size):
    encoder, output, parts, decoder, decoder_output = WIDTHS[size]
    together = counted(f"dense_nmt_1_{size}")
    apart = counted(f"dense_nmt_2_{size}")
    for model in (together, apart):
        assert widths_read(model.encoder_blocks) == encoder
        if decoder is not None:
            assert widths_read(model.decoder_blocks) == decoder
            width = model.decoder_output.direction.shape[0]
            assert width == decoder_output
    assert slices(together) == [output]
    assert slices(apart) == parts


def dense(inputs, outputs):
    return inputs * outputs + 2 * outputs


def convolution(kernel_size, inputs, outputs):
    return kernel_size * inputs * 2 * outputs + 4 * outputs


def published(layers, hidden, growth, summary, connection, attention, width):
    """Weights but for embeddings and softmax, by the paper's equations."""
    total, states = dense(width, hidden), [hidden]
    for number in range(1, layers + 1):
        read = sum(states)
        if connection == "residual":
            total += convolution(3, hidden, hidden)
        elif summary and number % summary == 0:
            total += convolution(3, read, hidden) + dense(read, hidden)
            states = [hidden]
        else:
            total += convolution(3, read, growth)
            states = [growth, *states]
    parts = states if attention == 2 else [sum(states)]
    total += sum(dense(part, width) for part in parts)
    total, read = total + dense(width, hidden), hidden
    for number in range(1, layers + 1):
        summarizes = summary and number % summary == 0
        new = growth if connection == "dense" and not summarizes else hidden
        total += convolution(3, read, new)
        total += dense(new, width) + dense(width, new)
        if connection == "dense":
            total += dense(read, hidden) if summarizes else 0
            read = hidden if summarizes else read + 2 * growth
    return total + dense(read, width)


BODIES = {
    "conv_seq2seq_4l": (4, 256, 0, None, "residual", 1, 256),
    "dense_nmt_1_4l": (4, 256, 128, None, "dense", 1, 256),
    "dense_nmt_2_4l": (4, 256, 128, None, "dense", 2, 256),
    "conv_seq2seq_8l": (8, 192, 0, 6, "residual", 1, 256),
    "dense_nmt_1_8l": (8, 192, 96, 6, "dense", 1, 256),
    "dense_nmt_2_8l": (8, 192, 96, 6, "dense", 2, 256),
}


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("name", BODIES)
def test_the_number_of_parameters_is_that_of_the_equations(name):
    body = published(*BODIES[name])
    around = 2 * V * 256 + 2 * 1024 * 256 + dense(256, V)
    assert counted(name).count_params() == body + around


def test_other_widths_of_embeddings_add_two_projections_a_side():
    with_projections = counted("dense_nmt_2_4l_embed_64").count_params()
    wide = counted("dense_nmt_2_4l").count_params()
    tables = 2 * (V + 1024) * (256 - 64)
    output = dense(1280, 256) - dense(1280, 64) + (256 - 64) * V
    assert with_projections == wide - tables - output + 4 * dense(64, 256)


@pytest.mark.thorough
@pytest.mark.parametrize("vocabulary_size", [40_000, 43_000])
def test_dense_connections_save_a_fifth_of_the_large_model(vocabulary_size):
    dense_model, residual = (
        counted(name, vocabulary_size, vocabulary_size).count_params()
        for name in ("dense_nmt_2_15l", "conv_seq2seq_15l")
    )
    assert 0.78 <= dense_model / residual <= 0.81


def small(**options):
    keras.utils.set_random_seed(0)
    return ConvSeq2Seq(V, V, 6, 3, 2, dropout=0.0, **options)


def memory_parts(model):
    memory = model.encode(IDS)
    return np.asarray(memory["key"]), np.asarray(memory["value"])


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({}, 1),
        ({"attention": "per_layer"}, 3),
        ({"encoder_connection": "dense"}, 1),
        ({"encoder_connection": "dense", "attention": "per_layer"}, 4),
    ],
)
def test_the_attention_has_the_pairs_of_its_kind(options, number):
    key, value = memory_parts(small(**options))
    assert key.shape == value.shape == (2, number, 5, 6)


def test_attention_to_each_residual_layer_reads_all_of_them():
    model = small(attention="per_layer")
    before, _ = memory_parts(model)
    last = model.encoder_blocks[-1].convolution.convolution
    last.bias.assign(last.bias + 1.0)
    after, _ = memory_parts(model)
    changed = [not np.allclose(before[:, i], after[:, i]) for i in range(3)]
    assert changed == [True, False, False]  # newest first


def test_words_are_in_the_values_with_their_positions():
    model = small()
    key, value = memory_parts(model)
    words = np.asarray(model.source_embedding.embeddings)[IDS]
    (positions,) = model.source_positions.get_weights()
    embeddings = words + positions[:5]
    expected = np.sqrt(0.5) * (key[:, 0] + embeddings)
    np.testing.assert_allclose(value[:, 0], expected, atol=1e-5)


def test_without_positions_words_have_none():
    model = small(position_encoding=None)
    key, value = memory_parts(model)
    words = np.asarray(model.source_embedding.embeddings)[IDS]
    expected = np.sqrt(0.5) * (key[:, 0] + words)
    np.testing.assert_allclose(value[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "scale"), [({}, 0.25), ({"attention": "per_layer"}, 1.0)]
)
def test_a_single_attention_scales_the_encoder_s_gradient(options, scale):
    model = small(encoder_connection="dense", **options)
    assert model.attention_memory.gradient_scale == scale  # 1 / (2 L)


def test_growth_is_half_of_the_width_unless_said():
    model = ConvSeq2Seq(V, V, [6, 4], 2, 2, decoder_connection="dense")
    assert model.get_config()["growth_dim"] == [3, 2]
    assert [block.filters for block in model.decoder_blocks] == [3, 2]
    assert [block.filters for block in model.encoder_blocks] == [6, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_dim": 0}, "`hidden_dim` must be at least 1"),
        ({"growth_dim": [3, 0]}, r"growth_dim=\[3, 0\]"),
        ({"kernel_size": [3]}, "each layer of both stacks.*num_encoder"),
        ({"summary_length": 0}, "summary_length=0"),
        ({"attention": "double"}, "'single', 'per_layer'.*'double'"),
        ({"encoder_connection": "highway"}, "'residual', 'dense'"),
        ({"position_encoding": "sinusoidal"}, "'learned', None"),
    ],
)
def test_refuses_what_does_not_fit(options, message):
    arguments = {"hidden_dim": 6, **options}
    with pytest.raises(ValueError, match=message):
        ConvSeq2Seq(
            V, V, num_encoder_layers=2, num_decoder_layers=2, **arguments
        )


def test_a_step_keeps_as_much_however_long_the_target_may_be():
    model = small(decoder_connection="dense", kernel_size=4)
    memory = model.encode(IDS)
    few, many = (
        keras.tree.map_structure(
            lambda state: tuple(state.shape),
            model.init_cache(memory, max_length, num_beams=2),
        )
        for max_length in (5, 500)
    )
    assert few == many
    # The last k - 1 inputs of each of 2 sentences with 2 beams.
    assert few["dynamic"]["decoder_block_1"] == {"inputs": (4, 3, 6)}
    assert few["dynamic"]["decoder_block_2"] == {"inputs": (4, 3, 12)}
