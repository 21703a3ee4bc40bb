"""What must be true of RoleEncoder: it is an LSTM, one in each direction, or a
convolution, whose backward direction begins at the last real token; a target
side sees no later token, and an exclusive one not even its own; step by step
it gives the same; rows of padding alone stay finite; a loaded one is not mixed
up with layers that were deleted before."""

import gc

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import RoleEncoder

B, S, D, U = 3, 7, 5, 2
LENGTHS = np.array([7, 4, 1])
REAL = np.arange(S) < LENGTHS[:, None]

ONE_WAY = [
    {"role_encoder": name, "bidirectional": False, "exclusive": exclusive}
    for name in ("lstm", "cnn")
    for exclusive in (False, True)
]


def describe(options):
    words = [options["role_encoder"]]
    words += ["exclusive"] if options.get("exclusive") else []
    return " ".join(words)


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(B, S, D)).astype("float32")


def built(**options):
    layer = RoleEncoder(U, **options)
    layer.build((B, S, D))
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape) * 0.5)
    return layer


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_lstm(weights, tokens):
    kernel, recurrent, bias = (np.asarray(weight) for weight in weights)
    hidden = cell = np.zeros(U)
    outputs = []
    for token in tokens:
        z = token @ kernel + hidden @ recurrent + bias
        gate, forget, new, out = np.split(z, 4)
        cell = sigmoid(forget) * cell + sigmoid(gate) * np.tanh(new)
        hidden = sigmoid(out) * np.tanh(cell)
        outputs.append(hidden)
    return np.array(outputs)


def run_convolution(weights, tokens, before, kernel_size):
    kernel, bias = (np.asarray(weight) for weight in weights)
    padded = np.zeros((before + len(tokens) + kernel_size, D))
    padded[before : before + len(tokens)] = tokens
    return np.array(
        [
            np.maximum(
                0,
                sum(padded[t + k] @ kernel[k] for k in range(kernel_size))
                + bias,
            )
            for t in range(len(tokens))
        ]
    )


def test_one_lstm_a_direction_meets_its_equations(inputs):
    layer = built()
    forward, backward = layer.weights[:3], layer.weights[3:]
    found = np.asarray(layer(inputs, padding_mask=REAL))
    for row, length in enumerate(LENGTHS):
        tokens = inputs[row, :length]
        expected = np.concatenate(
            [run_lstm(forward, tokens), run_lstm(backward, tokens[::-1])[::-1]],
            axis=1,
        )
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


def test_one_lstm_meets_its_equations(inputs):
    layer = built(bidirectional=False)
    found = np.asarray(layer(inputs))
    for row in range(B):
        expected = run_lstm(layer.weights, inputs[row])
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


@pytest.mark.parametrize(
    "options, before, kernel_size",
    [
        ({}, 3, 7),
        ({"kernel_size": 3}, 1, 3),
        ({"bidirectional": False}, 6, 7),
        ({"bidirectional": False, "exclusive": True}, 7, 7),
    ],
)
def test_a_convolution_meets_its_equation(inputs, options, before, kernel_size):
    layer = built(role_encoder="cnn", **options)
    found = np.asarray(layer(inputs, padding_mask=REAL))
    for row, length in enumerate(LENGTHS):
        tokens = inputs[row, :length]
        expected = run_convolution(layer.weights, tokens, before, kernel_size)
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


@pytest.mark.parametrize("role_encoder", ["lstm", "cnn"])
def test_padding_cannot_be_seen(inputs, role_encoder):
    layer = built(role_encoder=role_encoder)
    expected = np.asarray(layer(inputs, padding_mask=REAL))
    other = np.where(REAL[..., None], inputs, 1e3)
    other = np.pad(other, ((0, 0), (0, 4), (0, 0)), constant_values=-1e3)
    mask = np.pad(REAL, ((0, 0), (0, 4)))
    found = np.asarray(layer(other, padding_mask=mask))[:, :S]
    np.testing.assert_allclose(found[REAL], expected[REAL], atol=1e-6)


@pytest.mark.parametrize("options", ONE_WAY, ids=describe)
def test_padding_before_a_sentence_cannot_be_seen(inputs, options):
    layer = built(**options)
    real = REAL[:, ::-1]
    expected = np.asarray(layer(inputs, padding_mask=real))
    other = np.where(real[..., None], inputs, 1e3)
    found = np.asarray(layer(other, padding_mask=real))
    np.testing.assert_allclose(found[real], expected[real], atol=1e-6)


@pytest.mark.parametrize("role_encoder", ["lstm", "cnn"])
def test_both_directions_are_read(inputs, role_encoder):
    layer = built(role_encoder=role_encoder)
    before = np.asarray(layer(inputs))
    inputs[:, 3] += 1.0
    changed = np.any(np.asarray(layer(inputs)) != before, axis=(0, 2))
    assert changed.all()


@pytest.mark.parametrize("options", ONE_WAY, ids=describe)
def test_the_future_cannot_be_seen(inputs, options):
    layer = built(**options)
    before = np.asarray(layer(inputs))
    inputs[:, 3] += 1.0
    changed = np.any(np.asarray(layer(inputs)) != before, axis=(0, 2))
    first = 4 if options["exclusive"] else 3
    assert changed.tolist() == [t >= first for t in range(S)]


@pytest.mark.parametrize("options", ONE_WAY, ids=describe)
def test_step_by_step_gives_the_same(inputs, options):
    layer = built(**options)
    expected = np.asarray(layer(inputs))
    cache = layer.init_cache(B, S)
    for t in range(S):
        found, cache = layer(inputs[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(found, expected[:, t : t + 1], atol=1e-6)


@pytest.mark.parametrize("role_encoder", ["lstm", "cnn"])
def test_rows_of_padding_alone_stay_finite(inputs, role_encoder):
    layer = built(role_encoder=role_encoder)
    mask = np.array([True, False, False])[:, None] & REAL
    found = np.asarray(layer(inputs, padding_mask=mask))
    assert np.all(np.isfinite(found))
    alone = np.asarray(layer(inputs[:1], padding_mask=REAL[:1]))
    np.testing.assert_allclose(found[0], alone[0], atol=1e-6)


@pytest.mark.parametrize(
    "options, number",
    [
        ({}, 2 * 4 * (D * U + U * U + U)),
        ({"bidirectional": False}, 4 * (D * U + U * U + U)),
        ({"role_encoder": "cnn"}, 7 * D * U + U),
    ],
)
def test_the_number_of_parameters_is_exact(options, number):
    assert built(**options).count_params() == number


def test_the_numbers_of_the_paper_s_size():
    counts = []
    for bidirectional in (True, False):
        layer = RoleEncoder(32, bidirectional=bidirectional)
        layer.build((None, None, 256))
        counts.append(layer.count_params())
    assert counts == [73_984, 36_992]


def test_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="role_encoder='gru'"):
        RoleEncoder(U, role_encoder="gru")
    with pytest.raises(ValueError, match="Pass bidirectional=False"):
        RoleEncoder(U, exclusive=True)
    with pytest.raises(ValueError, match="Pass bidirectional=False"):
        built().init_cache(B, S)


@keras.saving.register_keras_serializable(package="tests")
class EncodersAfterDeletedLayers(keras.layers.Layer):
    """Builds encoders at addresses of layers that were serialized before."""

    def build(self, inputs_shape):
        deleted = [keras.layers.LSTM(4) for _ in range(300)]
        for layer in deleted:
            keras.saving.serialize_keras_object(layer)
        del deleted, layer
        gc.collect()
        self.encoders = [
            RoleEncoder(2, name=f"encoder_{number}") for number in range(40)
        ]
        for encoder in self.encoders:
            encoder.build(inputs_shape)

    def call(self, inputs):
        return sum(encoder(inputs) for encoder in self.encoders)


@pytest.mark.thorough
def test_a_loaded_encoder_shares_nothing_with_deleted_layers(tmp_path):
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, EncodersAfterDeletedLayers()(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    weights = zip(model.get_weights(), loaded.get_weights(), strict=True)
    for saved, restored in weights:
        np.testing.assert_array_equal(saved, restored)
