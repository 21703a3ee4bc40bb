"""A layer that does not fit its slot is refused when the model is made.

* a layer of another slot, Keras' own, or one without a cache is refused, with
  the way its slot calls it and the nearest layer that fits
* so is one whose result or cache has another shape than it must have
* layers that fit pass; the trial changes no weight of the model
"""

import random

import keras
import numpy as np
import pytest
from keras import ops
from toy_slots import all_slots

from keras_deepnmt import layers
from keras_deepnmt.decoding import search
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.models.slot_layers import SLOT_PURPOSES
from keras_deepnmt.models.slot_trial import SIGNATURES

D = 8
register = keras.saving.register_keras_serializable("test_slot_trial")


def transformer(**slots):
    return Transformer(13, 13, D, 16, 2, 2, 2, **slots)


@register
class Attention(keras.layers.Layer):
    """Fits an encoder, but has no cache."""

    def call(self, query, attention_mask=None, use_causal_mask=False):
        return query


@register
class OneVector(Attention):
    """Would be added to all positions."""

    def call(self, query, attention_mask=None, use_causal_mask=False):
        return ops.mean(query, axis=1, keepdims=True)

    def compute_output_shape(self, query_shape):
        return query_shape  # not what `call` returns


@register
class CachedAttention(Attention):
    """Reads earlier positions, and keeps their sum or all of them."""

    def __init__(self, fault=None, **kwargs):
        super().__init__(**kwargs)
        self.fault = fault

    def call(
        self,
        query,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
    ):
        if cache is None:
            return ops.cumsum(query, axis=1)
        total = cache["sum"] + query
        if self.fault == "no cache back":
            return total
        if self.fault == "a longer cache":
            total = ops.concatenate([cache["sum"], query], axis=1)
            return query, {"sum": total}
        return total, {"sum": total}

    def init_cache(self, batch_size, max_length):
        return {"sum": ops.zeros((batch_size, 1, D), self.compute_dtype)}

    def get_config(self):
        return {**super().get_config(), "fault": self.fault}


@register
class NoStepArguments(CachedAttention):
    def call(self, query, attention_mask=None, use_causal_mask=False):
        return query


@register
class WithoutCache(keras.layers.Layer):
    """Adds the mean of the source to each position."""

    def call(self, query, value, attention_mask=None):
        return query + self.mean(value)

    def mean(self, value):
        return ops.mean(value, axis=1, keepdims=True)


@register
class MeanOfSource(WithoutCache):
    """The same, with a cache of its own kind."""

    def call(self, query, value=None, attention_mask=None, cache=None):
        if cache is None:
            return super().call(query, value)
        num_beams = query.shape[0] // cache["mean"].shape[0]
        return query + ops.repeat(cache["mean"], num_beams, axis=0), cache

    def static_cache(self, value):
        return {"mean": self.mean(value)}


@register
class Unfinished(keras.layers.Layer):
    """Its configuration lacks an argument that is not plain data."""

    def __init__(self, function=abs, **kwargs):
        super().__init__(**kwargs)
        self.function = function

    def call(self, inputs, padding_mask=None):
        return self.function(inputs)


@register
class Forgetful(Unfinished):
    """The clone would have another number without a word."""

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def get_config(self):
        return keras.layers.Layer.get_config(self)


@register
class OwnAttention(layers.MultiHeadAttention):
    pass


class Unregistered(Attention):
    pass


ATTENTIONS = {
    "encoder_self_attention": (
        "HybridSelfAttention, MultiHeadAttention, MultiLayerAttention."
    ),
    "decoder_cross_attention": "MultiHeadAttention.",
    "decoder_self_attention": (
        "AverageAttention, HybridSelfAttention, MultiHeadAttention, "
        "MultiLayerAttention, SimplerSimpleRecurrentUnit."
    ),
}


@pytest.mark.parametrize(
    "slot, layer, received",
    [
        (
            "encoder_self_attention",
            lambda: layers.SurfaceFusion(),
            "keras_deepnmt.SurfaceFusion, a layer for `output_fusion`",
        ),
        (
            "encoder_self_attention",
            lambda: keras.layers.MultiHeadAttention(2, 4),
            "keras.MultiHeadAttention, whose `call` needs `value` as well",
        ),
        (
            "decoder_self_attention",
            lambda: layers.MultiLayerAttention(
                2, 2, keras.layers.MultiHeadAttention(2, 4)
            ),
            "keras.MultiHeadAttention, whose `call` needs `value` as well",
        ),
        (
            "decoder_self_attention",
            Attention,
            "Attention, which has no method `init_cache`",
        ),
        (
            "decoder_self_attention",
            NoStepArguments,
            "whose `call` does not take `cache`, `cache_index`",
        ),
        (
            "decoder_self_attention",
            lambda: CachedAttention("no cache back"),
            "which returns (14, 1, 8) in a decoding step",
        ),
        (
            "decoder_self_attention",
            lambda: CachedAttention("a longer cache"),
            "makes {sum: (14, 2, 8)} of the cache {sum: (14, 1, 8)}",
        ),
        (
            "decoder_cross_attention",
            WithoutCache,
            "WithoutCache, which has no method `static_cache`",
        ),
        (
            "decoder_cross_attention",
            lambda: layers.HybridSelfAttention(2, ("global",)),
            "HybridSelfAttention, a layer for `encoder_self_attention`, "
            "`decoder_self_attention`",
        ),
        (
            "encoder_self_attention",
            OneVector,
            "which returns (2, 1, 8) instead of (2, 5, 8)",
        ),
        (
            "source_embedding_layer",
            lambda: keras.layers.Dense(D),
            "keras.Dense, whose `call` does not take `padding_mask`",
        ),
        (
            "target_embedding_layer",
            lambda: keras.layers.Dense(D + 1),
            "which returns (2, 3, 9) instead of (2, 3, 8)",
        ),
        (
            "encoder_fusion",
            keras.layers.Average,
            "which returns (2, 5, 8) instead of [(2, 5, 8), (2, 5, 8)]",
        ),
        (
            "decoder_aggregation",
            keras.layers.Average,
            "does not take `padding_mask`, `use_causal_mask`",
        ),
        (
            "output_fusion",
            lambda: keras.layers.Dense(13),
            "does not take `static_cache`, `memory_padding_mask`, `project`",
        ),
        ("layer_diversity", keras.layers.Average, "take `padding_mask`"),
    ],
)
def test_a_layer_that_does_not_fit_is_refused(slot, layer, received):
    with pytest.raises(ValueError) as info:
        transformer(**{slot: layer()})
    message = str(info.value)
    assert message.startswith(f"`{slot}` must be a layer that is called as ")
    assert SIGNATURES[slot] in message and received in message
    assert "\n" not in message
    if "attention" in slot:
        assert message.endswith(
            "Use keras_deepnmt.layers.MultiHeadAttention, or derive from it. "
            f"Layers for this slot: {ATTENTIONS[slot]}"
        )


@pytest.mark.parametrize(
    "layer, message",
    [
        (Unfinished(function=max), "`get_config` returns every argument"),
        (Forgetful(factor=3.0), "lacks `factor`"),
        (Unregistered(), "Unregistered. Could not locate class"),
    ],
)
def test_a_layer_that_cannot_be_cloned_is_refused(layer, message):
    with pytest.raises((TypeError, ValueError), match=message) as info:
        transformer(source_embedding_layer=layer)
    assert str(info.value).startswith("`source_embedding_layer`")
    assert "\n" not in str(info.value)


def test_a_layer_of_the_slot_says_itself_which_option_is_wrong():
    hybrid = layers.HybridSelfAttention(2)
    transformer(encoder_self_attention=hybrid)
    for layer in (hybrid, layers.MultiLayerAttention(2, 2, hybrid)):
        with pytest.raises(ValueError, match='not contain "backward"') as info:
            transformer(decoder_self_attention=layer)
        assert "\n" not in str(info.value)


def test_cross_attention_takes_no_relative_positions():
    layer = layers.MultiHeadAttention(
        2, relative_position=layers.RotaryPositionEmbedding()
    )
    transformer(decoder_self_attention=layer)
    with pytest.raises(ValueError, match="no `relative_position`.*Rotary"):
        transformer(decoder_cross_attention=layer)


def test_cross_attention_may_have_a_cache_of_any_kind():
    model = transformer(decoder_cross_attention=MeanOfSource())
    source_ids = np.array([[5, 6, 3], [7, 3, 0]], "int32")
    found = search(model, source_ids, num_beams=2, max_length=5)
    best = found["ids"][:, 0]
    scored = score_targets(
        model,
        source_ids,
        np.pad(best, [(0, 0), (1, 0)], constant_values=2)[:, :-1],
        best,
    )
    np.testing.assert_allclose(
        np.sum(scored, axis=1), found["log_probs"][:, 0], atol=1e-5
    )


def test_layers_that_fit_pass():
    assert set(SIGNATURES) == set(SLOT_PURPOSES)
    made = transformer(
        **all_slots(2, feeds_back=True),
    )
    assert made.decoder_blocks[0].attention.built
    transformer(
        encoder_self_attention=Attention(),
        decoder_self_attention=CachedAttention(),
    )


@pytest.mark.parametrize("connection", ["residual", "dense"])
def test_the_convolutional_model_tries_its_slots_too(connection):
    options = dict(encoder_connection=connection, summary_length=2)
    sizes = (13, 13, [8, 6, 4], 3, 3)
    with pytest.raises(ValueError, match="`output_fusion` must be a layer"):
        ConvSeq2Seq(*sizes, output_fusion=layers.MultiHeadAttention(1))
    made = ConvSeq2Seq(
        *sizes, **options, output_fusion=layers.SurfaceFusion(surface="max")
    )
    ids = np.array([[5, 6, 3]], "int32")
    widths = made.encode(ids)["output"].shape[-1]
    assert widths == {"residual": 4, "dense": 6 + 2}[connection]


def test_the_trial_does_not_change_the_initial_weights():
    random.seed(3)
    made = transformer(encoder_self_attention=OwnAttention(2))
    random.seed(3)
    plain = transformer()
    for one, other in zip(made.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(one, other)
