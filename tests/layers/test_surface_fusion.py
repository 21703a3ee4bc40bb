"""What must be true of SurfaceFusion: it is its equations; at their limits
the fusions are the decoder's prediction alone; a loss of the surface reaches
the source embeddings and no block; padding cannot be seen; a step with the
cache of a sentence equals the whole; and its size is what the paper counts."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import SurfaceFusion
from keras_deepnmt.losses import LabelSmoothedCrossEntropy

B, T, S, D, V, F, K = 3, 5, 7, 11, 13, 17, 2
SHAPES = {
    "inputs": (B, T, D),
    "memory": (B, S, D),
    "source_embeddings": (B, S, D),
}
EVERY_PATH = [
    {"mode": "hard"},
    {"mode": "hard", "temperature": 2.0, "key_bias": True},
    {"mode": "soft", "temperature": 5.0},
    {"mode": "gate"},
    {"mode": "gate", "feed_forward": True, "intermediate_dim": F},
    {"mode": "soft", "surface": "mean", "feed_forward": True},
    {"mode": "hard", "surface": "max"},
    {"mode": "gate", "surface": "mean"},
]
every_path = pytest.mark.parametrize("options", EVERY_PATH)


@pytest.fixture
def tensors():
    random = np.random.default_rng(0)
    return {
        name: random.normal(size=shape).astype("float32")
        for name, shape in SHAPES.items()
    }


@pytest.fixture
def mask():
    return np.arange(S) < np.array([[7], [4], [1]])


def built(**kwargs):
    layer = SurfaceFusion(output_projection=keras.layers.Dense(V), **kwargs)
    layer.build(*SHAPES.values())
    random = np.random.default_rng(1)
    layer.set_weights(
        [random.normal(size=w.shape) * 0.3 for w in layer.weights]
    )
    return layer


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def affine(dense, x):
    bias = 0.0 if dense.bias is None else np.asarray(dense.bias)
    return x @ np.asarray(dense.kernel) + bias


def surface_of(layer, inputs, memory, source_embeddings, mask):
    surface = np.zeros((B, T, D))
    if layer.surface == "attention":
        part = layer.attention
        query = affine(part.query_projection, inputs)
        key = affine(part.key_projection, memory)
        value = affine(part.value_projection, source_embeddings)
    for b in range(B):
        real = np.flatnonzero(mask[b])
        for t in range(T):
            if layer.surface == "mean":
                surface[b, t] = source_embeddings[b, real].mean(axis=0)
            elif layer.surface == "max":
                surface[b, t] = source_embeddings[b, real].max(axis=0)
            else:
                scores = key[b, real] @ query[b, t] / np.sqrt(D)
                weights = np.exp(log_softmax(scores))
                surface[b, t] = weights @ value[b, real]
    if layer.surface == "attention":
        surface = affine(part.output_projection, surface)
    return surface


def logits_of(layer, x):
    if layer.feed_forward:
        first = layer.feed_forward_layer.intermediate
        second = layer.feed_forward_layer.output_dense
        hidden = x @ np.asarray(first.kernel) + np.asarray(first.bias)
        x = x + affine(second, np.maximum(hidden, 0.0))
    return affine(layer.projection, x)


def reference(layer, inputs, memory, source_embeddings, mask):
    surface = surface_of(layer, inputs, memory, source_embeddings, mask)
    logits = logits_of(layer, inputs)
    log_p = log_softmax(logits_of(layer, surface) / layer.temperature)
    if layer.mode == "soft":
        return log_softmax(logits + log_p)
    share = layer.weight
    if layer.mode == "gate":
        gate = np.concatenate(np.asarray(layer.gate))  # [h; r]
        both = np.concatenate([inputs, surface], axis=-1)
        share = 1.0 / (1.0 + np.exp(-both @ gate))[..., None]
    return share * log_softmax(logits) + (1.0 - share) * log_p


@every_path
def test_matches_the_equation(tensors, mask, options):
    layer = built(**options)
    found = layer(**tensors, memory_padding_mask=mask)
    expected = reference(layer, **tensors, mask=mask)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_a_mask_all_positions_are_real(tensors):
    for options in EVERY_PATH:
        layer = built(**options)
        expected = reference(layer, **tensors, mask=np.ones((B, S), bool))
        np.testing.assert_allclose(layer(**tensors), expected, atol=1e-5)


def vanilla(layer, tensors):
    return log_softmax(logits_of(layer, tensors["inputs"]))


def test_soft_fusion_sums_to_one(tensors, mask):
    found = built(mode="soft")(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1.0, atol=1e-5)


def test_a_high_temperature_gives_the_decoder_alone(tensors, mask):
    layer = built(mode="soft", temperature=1e9)
    found = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(found, vanilla(layer, tensors), atol=1e-5)
    layer = built(mode="soft", temperature=1.0)
    found = layer(**tensors, memory_padding_mask=mask)
    assert not np.allclose(found, vanilla(layer, tensors), atol=0.1)


def test_hard_fusion_with_weight_one_gives_the_decoder_alone(tensors, mask):
    layer = built(weight=1.0)
    found = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(found, vanilla(layer, tensors), atol=1e-5)


def test_hard_fusion_sums_to_at_most_one(tensors, mask):
    found = built(weight=0.5)(**tensors, memory_padding_mask=mask)
    totals = np.exp(found).sum(axis=-1)
    assert np.all(totals <= 1.0 + 1e-6)
    assert np.any(totals < 0.99)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_the_loss_of_hard_fusion_is_the_weighted_sum(
    tensors, mask, label_smoothing
):
    labels = np.random.default_rng(2).integers(0, V, (B, T))
    loss = LabelSmoothedCrossEntropy(label_smoothing)
    fused, decoder, surface = (
        loss.call(
            keras.ops.convert_to_tensor(labels),
            built(weight=weight)(**tensors, memory_padding_mask=mask),
        )
        for weight in (0.8, 1.0, 0.0)
    )
    assert not np.allclose(decoder, surface)
    np.testing.assert_allclose(fused, 0.8 * decoder + 0.2 * surface, atol=1e-5)


def translator(weight):
    """A graph of one encoder and one decoder layer, with a tied output."""
    source_ids = keras.Input((None,), dtype="int32")
    target_ids = keras.Input((None,), dtype="int32")
    source = keras.layers.Embedding(V, D, name="source")(source_ids)
    memory = keras.layers.Dense(D, name="encoder")(source)
    target = keras.layers.ReversibleEmbedding(V, D, name="target")
    states = keras.layers.Dense(D, name="decoder")(target(target_ids))
    fused = SurfaceFusion(weight=weight, name="fusion")(
        states, memory, source, project=lambda x: target(x, reverse=True)
    )
    return keras.Model([source_ids, target_ids], fused)


def moved_by_the_loss(weight):
    model = translator(weight)
    random = np.random.default_rng(3)
    ids = [random.integers(0, V, shape) for shape in ((B, S), (B, T))]
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(model(ids)[..., 0])
    gradients = tape.gradient(loss, model.trainable_weights)
    return {
        variable.path.split("/")[0]
        for variable, gradient in zip(
            model.trainable_weights, gradients, strict=True
        )
        if gradient is not None
        and np.any(tf.convert_to_tensor(gradient) != 0.0)
    }


def test_the_surface_s_loss_reaches_embeddings_and_no_block():
    assert moved_by_the_loss(weight=0.0) == {"source", "target", "fusion"}


def test_the_decoder_s_share_reaches_the_decoder():
    moved = moved_by_the_loss(weight=0.8)
    assert moved == {"source", "target", "fusion", "decoder"}


@pytest.mark.parametrize(
    "options, num_weights",
    [
        ({"key_bias": True}, 1_050_624),
        ({}, 1_050_624 - 512),
        ({"key_bias": True, "mode": "gate"}, 1_050_624 + 2 * 512),
        ({"surface": "mean"}, 0),
        ({"surface": "max", "feed_forward": True}, 2_099_712),
    ],
)
def test_the_number_of_parameters_is_exact(options, num_weights):
    layer = SurfaceFusion(**options)
    layer.build((None, None, 512))
    assert layer.count_params() == num_weights


@every_path
def test_padding_cannot_be_seen(tensors, mask, options):
    layer = built(**options)
    before = layer(**tensors, memory_padding_mask=mask)
    for name in ("memory", "source_embeddings"):
        tensors[name] = np.where(mask[..., None], tensors[name], 1e4)
    after = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(after, before, atol=1e-5)


@every_path
def test_a_row_of_padding_alone_stays_finite(tensors, mask, options):
    layer = built(**options)
    mask[1] = False
    found = np.asarray(layer(**tensors, memory_padding_mask=mask))
    assert np.all(np.isfinite(found))
    if layer.surface != "attention":
        # As a sentence of zeros.
        tensors["source_embeddings"][1] = 0.0
        mask[1] = True
        again = layer(**tensors, memory_padding_mask=mask)
        np.testing.assert_allclose(again, found, atol=1e-5)


@every_path
def test_a_target_position_does_not_see_the_others(tensors, mask, options):
    layer = built(**options)
    expected = np.asarray(layer(**tensors, memory_padding_mask=mask))[:, 2:3]
    tensors["inputs"] = tensors["inputs"][:, 2:3]
    found = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@every_path
def test_a_step_equals_the_whole_and_beams_share_a_sentence(
    tensors, mask, options
):
    layer = built(**options)
    inputs = np.random.default_rng(4).normal(size=(B * K, 1, D))
    source = {n: x for n, x in tensors.items() if n != "inputs"}
    repeated = {n: np.repeat(x, K, axis=0) for n, x in source.items()}
    expected = layer(
        inputs, **repeated, memory_padding_mask=np.repeat(mask, K, axis=0)
    )
    cache = layer.static_cache(**source, memory_padding_mask=mask)
    for tensor in cache.values():
        assert tensor.shape[0] == B
    # Only the mask is given: the step reads nothing else of the source.
    found = layer(inputs, static_cache=cache, memory_padding_mask=mask)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # As a model does that does not know the mask when it makes the cache.
    cache = layer.static_cache(**source)
    found = layer(
        inputs, **source, static_cache=cache, memory_padding_mask=mask
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("surface, positions", [("attention", 2), ("max", 1)])
def test_a_step_reads_the_output_matrix_once(tensors, surface, positions):
    seen = []
    layer = built(surface=surface)

    def project(x):
        seen.append(x.shape)
        return layer.projection(x)

    inputs = tensors.pop("inputs")[:, :1]
    cache = layer.static_cache(
        **tensors, memory_padding_mask=np.ones((B, S), bool)
    )
    expected = layer(inputs, static_cache=cache)
    found = layer(inputs, static_cache=cache, project=project)
    np.testing.assert_array_equal(found, expected)
    assert seen == [(B, positions, D)]


@pytest.mark.parametrize(
    "options", [{"feed_forward": True}, {"attention_dropout": 0.5}]
)
def test_dropout_acts_in_training_only(tensors, options):
    layer = built(dropout=0.5, **options)
    still = layer(**tensors)
    np.testing.assert_array_equal(layer(**tensors, training=False), still)
    assert not np.allclose(layer(**tensors, training=True), still)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"mode": "firm"}, "mode='firm'"),
        ({"surface": "min"}, "surface='min'"),
        ({"weight": 1.1}, "weight=1.1"),
        ({"temperature": 0.0}, "above 0.*temperature=0.0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"intermediate_dim": F}, "feed_forward=True.*intermediate_dim=17"),
    ],
)
def test_refuses_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        SurfaceFusion(**options)


def test_refuses_embeddings_of_another_width(tensors):
    tensors["source_embeddings"] = tensors["source_embeddings"][..., : D - 1]
    with pytest.raises(ValueError, match="as wide as `inputs`.*10.*11"):
        SurfaceFusion()(**tensors, project=keras.layers.Dense(V))


@pytest.mark.parametrize("missing", ["memory", "source_embeddings"])
def test_attention_needs_keys_and_values(tensors, missing):
    del tensors[missing]
    with pytest.raises(ValueError, match=f"`{missing}` must be passed"):
        SurfaceFusion()(**tensors, project=keras.layers.Dense(V))


def test_refuses_to_guess_a_projection(tensors):
    with pytest.raises(ValueError, match="project=None"):
        SurfaceFusion()(**tensors)
