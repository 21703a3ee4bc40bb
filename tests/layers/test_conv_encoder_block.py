"""What must be true of the blocks of convolutional stacks: each connection is
its equation; a dense stack is as wide as the paper says; a summary lets
nothing older through; padding and later target words are not seen."""

import numpy as np
import pytest

from keras_deepnmt.layers import ConvDecoderBlock, ConvEncoderBlock

B, S, T, D, U, N = 3, 7, 5, 2, 11, 13
REAL = np.arange(S) < np.array([[7], [4], [2]])
WIDTHS = (5, 3)


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def states(length, widths=WIDTHS):
    return [normal(i, B, length, width) for i, width in enumerate(widths)]


def decoder_inputs(length=T, rows=B):
    shape = (B, 2, S, D)
    return normal(7, rows, length, D), normal(8, *shape), normal(9, *shape)


def scrambled(layer):
    """Moves the biases off their initial zeros."""
    layer.set_weights([w + 0.1 * normal(3, *w.shape) for w in layer.weights])
    return layer


def projected(summary, x):
    projection = summary.projection
    return x @ np.asarray(projection.kernel) + np.asarray(projection.bias)


def test_a_residual_block_adds_half_the_variance():
    block = ConvEncoderBlock(U)
    x = normal(0, B, S, U)
    block([x])
    scrambled(block)
    y = np.asarray(block.convolution(x, padding_mask=REAL))
    (found,) = block([x], padding_mask=REAL)
    np.testing.assert_allclose(found, np.sqrt(0.5) * (x + y), atol=1e-5)
    assert not hasattr(block.summary, "projection")


def test_a_residual_block_of_another_width_projects():
    block = ConvEncoderBlock(U)
    (x,) = given = states(S, [5])
    block(given)
    scrambled(block)
    expected = projected(block.summary, x) + np.asarray(block.convolution(x))
    np.testing.assert_allclose(
        block(given)[0], np.sqrt(0.5) * expected, atol=1e-5
    )


def test_a_dense_block_keeps_all_it_read_newest_first():
    block = ConvEncoderBlock(U, "dense")
    given = states(S)
    found = block(given, padding_mask=REAL)
    everything = np.concatenate(given, axis=-1)
    y = block.convolution(everything, padding_mask=REAL)
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], y)
    for old, kept in zip(given, found[1:], strict=True):
        np.testing.assert_array_equal(kept, old)


def test_a_summary_replaces_all_it_read():
    block = ConvEncoderBlock(U, "summary")
    given = states(S)
    block(given)
    scrambled(block)
    x = np.concatenate(given, axis=-1)
    expected = projected(block.summary, x) + np.asarray(block.convolution(x))
    found = block(given)
    assert len(found) == 1
    np.testing.assert_allclose(found[0], np.sqrt(0.5) * expected, atol=1e-5)


def test_a_dense_decoder_block_keeps_convolution_and_attention():
    block = ConvDecoderBlock(U, "dense")
    given, inputs = states(T), decoder_inputs()
    block(given, *inputs)
    scrambled(block)
    z, a, *others = block(given, *inputs, memory_padding_mask=REAL)
    expected = block.convolution(np.concatenate(given, axis=-1))
    np.testing.assert_array_equal(z, expected)
    expected = block.attention(z, *inputs, memory_padding_mask=REAL)
    np.testing.assert_array_equal(a, expected)
    for old, kept in zip(given, others, strict=True):
        np.testing.assert_array_equal(kept, old)


@pytest.mark.parametrize("connection", ["residual", "summary"])
def test_other_decoder_blocks_add_both(connection):
    block = ConvDecoderBlock(U, connection)
    given, inputs = states(T, [U]), decoder_inputs()
    block(given, *inputs)
    scrambled(block)
    z = np.asarray(block.convolution(given[0]))
    a = np.asarray(block.attention(z, *inputs))
    old = given[0]
    if connection == "summary":
        old = projected(block.summary, old)
    expected = np.sqrt(0.5) * (old + np.sqrt(0.5) * (a + z))
    (found,) = block(given, *inputs)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def run(blocks, x, *inputs):
    given = [x]
    for block in blocks:
        given = block(given, *inputs)
    return [np.asarray(state) for state in given]


@pytest.mark.parametrize("decoder", [False, True])
def test_a_summary_lets_nothing_older_through(decoder):
    kind = ConvDecoderBlock if decoder else ConvEncoderBlock
    inputs = decoder_inputs(S) if decoder else ()
    blocks = [
        kind(U, connection)
        for connection in ("dense", "summary", "dense", "dense")
    ]
    one, other = normal(1, B, S, 6), normal(2, B, S, 6)
    before = [run(blocks, x, *inputs) for x in (one, other)]
    assert not np.allclose(before[0][0], before[1][0])
    summary = blocks[1]
    silenced = [summary.convolution.convolution, summary.summary.projection]
    if decoder:  # the query comes from the convolution, but not only
        silenced.append(summary.attention.output_projection)
    for layer in silenced:
        layer.gain.assign(np.zeros(layer.gain.shape))
    after = [run(blocks, x, *inputs) for x in (one, other)]
    for mine, yours in zip(*after, strict=True):
        np.testing.assert_array_equal(mine, yours)


def test_padding_is_not_seen():
    block = ConvEncoderBlock(U, "summary")
    given = states(S)
    expected = np.asarray(block(given, padding_mask=REAL)[0])
    other = [np.where(REAL[..., None], x, np.float32(99)) for x in given]
    found = np.asarray(block(other, padding_mask=REAL)[0])
    np.testing.assert_array_equal(found[REAL], expected[REAL])


@pytest.mark.parametrize("connection", ["dense", "summary"])
@pytest.mark.parametrize("kernel_size", [1, 3, 4])
def test_step_by_step_is_all_at_once(connection, kernel_size):
    block = ConvDecoderBlock(U, connection, kernel_size)
    given = states(T)
    embeddings, key, value = decoder_inputs()
    expected = block(given, embeddings, key, value)
    cache = block.init_cache(B, T)
    for t in range(T):
        found, cache = block(
            [x[:, t : t + 1] for x in given],
            embeddings[:, t : t + 1],
            key,
            value,
            cache=cache,
        )
        for mine, yours in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                mine[:, 0], np.asarray(yours)[:, t], atol=1e-5
            )


def test_later_target_words_are_not_seen():
    block = ConvDecoderBlock(U, "dense")
    given, inputs = states(T), decoder_inputs()
    expected = np.asarray(block(given, *inputs)[1])
    for x in given:
        x[:, 3:] = 99.0
    found = np.asarray(block(given, *inputs)[1])
    np.testing.assert_array_equal(found[:, :3], expected[:, :3])
    assert not np.allclose(found[:, 3:], expected[:, 3:])


def test_refuses_an_unknown_connection():
    with pytest.raises(ValueError, match="connection='highway'"):
        ConvEncoderBlock(U, "highway")
