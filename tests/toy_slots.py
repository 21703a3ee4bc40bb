"""Toy layers, one for each slot of a model: what a paper's layer would do.

They are as small as a layer that uses its slot in full can be, so that a
test of the slots tests the model and not the layers.
"""

import keras
from keras import ops

from keras_deepnmt.layers import MultiHeadAttention, ResidualConnection

register = keras.saving.register_keras_serializable(package="toy_slots")


@register
class ScalingEmbedding(keras.layers.Layer):
    """Embedding slot: multiplies by one learned number a channel."""

    def build(self, inputs_shape):
        self.scale = self.add_weight(
            name="scale", shape=(inputs_shape[-1],), initializer="ones"
        )

    def call(self, inputs, padding_mask=None):
        return inputs * ops.cast(self.scale, inputs.dtype)


@register
class RunningMeanEmbedding(keras.layers.Layer):
    """Embedding slot with a cache: adds a learned share of the mean so far."""

    def build(self, inputs_shape):
        self.width = inputs_shape[-1]
        self.share = self.add_weight(
            name="share", shape=(self.width,), initializer="ones"
        )

    def call(self, inputs, padding_mask=None, cache=None, cache_index=None):
        if cache is None:
            count = ops.arange(ops.shape(inputs)[1]) + 1
            total = ops.cumsum(inputs, axis=1)
        else:
            count = ops.reshape(cache_index + 1, (1,))
            total = cache["sum"] + inputs
            cache = {"sum": total}
        mean = total / ops.cast(count, inputs.dtype)[None, :, None]
        output = inputs + mean * ops.cast(self.share, inputs.dtype)
        return output if cache is None else (output, cache)

    def init_cache(self, batch_size, max_length):
        shape = (batch_size, 1, self.width)
        return {"sum": ops.zeros(shape, dtype=self.compute_dtype)}


@register
class ScaledAttention(MultiHeadAttention):
    """Attention slot: multi-head attention and one learned gain."""

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.gain = self.add_weight(name="gain", shape=(), initializer="ones")

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        return_attention_scores=False,
        training=None,
    ):
        result = super().call(
            query,
            value,
            key,
            attention_mask,
            use_causal_mask,
            cache,
            cache_index,
            return_attention_scores,
            training,
        )
        gain = ops.cast(self.gain, self.compute_dtype)
        if isinstance(result, tuple):
            return (result[0] * gain, *result[1:])
        return result * gain


@register
class MeanAggregation(keras.layers.Layer):
    """Aggregation slot: a weighted mean of the states and what it gave."""

    def __init__(self, feeds_back=False, **kwargs):
        super().__init__(**kwargs)
        self.feeds_back = feeds_back

    def build(self, layer_states_shape):
        self.gain = self.add_weight(
            name="gain",
            shape=(layer_states_shape[0][-1],),
            initializer="ones",
        )

    def call(
        self,
        layer_states,
        previous=(),
        padding_mask=None,
        use_causal_mask=False,
    ):
        states = [*layer_states, *previous]
        mean = sum(states[1:], states[0]) / len(states)
        return mean * ops.cast(self.gain, mean.dtype)

    def get_config(self):
        return {**super().get_config(), "feeds_back": self.feeds_back}


@register
class MemoryByBlock(keras.layers.Layer):
    """Encoder fusion slot: each decoder block weighs the states anew."""

    def __init__(self, num_memories, **kwargs):
        super().__init__(**kwargs)
        self.num_memories = num_memories

    def build(self, layer_states_shape):
        self.mixture = self.add_weight(
            name="mixture",
            shape=(self.num_memories, len(layer_states_shape)),
            initializer="random_normal",
        )

    def call(self, layer_states):
        states = ops.stack(layer_states, axis=0)  # (L + 1, B, S, D)
        weights = ops.cast(ops.softmax(self.mixture), states.dtype)
        return [
            ops.einsum("l,lbsd->bsd", weights[number], states)
            for number in range(self.num_memories)
        ]

    def get_config(self):
        return {**super().get_config(), "num_memories": self.num_memories}


@register
class SurfaceMixture(keras.layers.Layer):
    """Output fusion slot: attends to the surface, gives log-probabilities."""

    def build(
        self, states_shape, memory_shape=None, source_embeddings_shape=None
    ):
        self.attention = MultiHeadAttention(
            1, name="attention", dtype=self.dtype_policy
        )
        self.attention.build(states_shape, memory_shape, memory_shape)

    def call(
        self,
        states,
        memory,
        source_embeddings,
        memory_padding_mask=None,
        static_cache=None,
        project=None,
    ):
        # LiteRT has no slice of bools that adds an axis.
        mask = ops.expand_dims(memory_padding_mask, 1)
        if static_cache is None:
            surface = self.attention(
                states, source_embeddings, memory, attention_mask=mask
            )
        else:
            surface, _ = self.attention(
                states, attention_mask=mask, cache=static_cache
            )
        logits = ops.cast(project(states + surface), "float32")
        return ops.log_softmax(logits, axis=-1)

    def compute_output_spec(self, states, *args, project=None, **kwargs):
        # Said outright: JAX cannot trace a call that takes a function.
        return keras.KerasTensor(project(states).shape, dtype="float32")

    def static_cache(
        self, memory, source_embeddings, memory_padding_mask=None, project=None
    ):
        return self.attention.static_cache(source_embeddings, memory)


@register
class PeakPenalty(keras.layers.Layer):
    """Diversity slot: punishes peaked states, with a learned strength."""

    def __init__(self, reduction="mean", positions="target", **kwargs):
        super().__init__(**kwargs)
        self.reduction = reduction
        self.positions = positions

    def build(self, layer_states_shape):
        self.strength = self.add_weight(
            name="strength", shape=(), initializer="ones"
        )

    def call(self, layer_states, padding_mask=None):
        real = ops.cast(padding_mask, "float32")
        loss = 0.0
        for state in layer_states:
            # Not the square: a normalized state always has the same.
            size = ops.mean(ops.cast(state, "float32") ** 4, axis=-1)
            loss += ops.sum(size * real)
        if self.reduction == "mean":
            loss /= ops.maximum(ops.sum(real), 1.0)
        strength = ops.cast(self.strength, "float32")
        self.add_loss(0.001 * strength * loss)
        return layer_states[-1]

    def get_config(self):
        options = {"reduction": self.reduction, "positions": self.positions}
        return {**super().get_config(), **options}


@register
class WeighedResidual(ResidualConnection):
    """Weighs the input of a sub-layer before it adds the output."""

    def build(self, inputs_shape, outputs_shape=None):
        super().build(inputs_shape, outputs_shape)
        self.weight = self.add_weight(
            name="weight", shape=(), initializer="ones"
        )

    def call(self, inputs, outputs, training=None):
        weight = ops.cast(self.weight, inputs.dtype)
        return super().call(weight * inputs, outputs, training=training)


@register
class BlockMixture(keras.layers.Layer):
    """Mixes the input of a block with its output."""

    def build(self, inputs_shape, outputs_shape=None):
        self.share = self.add_weight(
            name="share", shape=(), initializer=keras.initializers.Constant(0.1)
        )

    def call(self, inputs, outputs):
        share = ops.cast(self.share, inputs.dtype)
        return outputs + share * (inputs - outputs)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return inputs_shape


def all_slots(num_decoder_layers, feeds_back):
    """A prototype for every slot of a model at once."""
    return {
        "source_embedding_layer": ScalingEmbedding(),
        "target_embedding_layer": RunningMeanEmbedding(),
        "encoder_self_attention": ScaledAttention(num_heads=2),
        "decoder_self_attention": ScaledAttention(num_heads=2),
        "decoder_cross_attention": ScaledAttention(num_heads=2),
        "encoder_aggregation": MeanAggregation(feeds_back),
        "decoder_aggregation": MeanAggregation(feeds_back),
        "encoder_fusion": MemoryByBlock(num_decoder_layers),
        "output_fusion": SurfaceMixture(),
        "layer_diversity": PeakPenalty(),
        "residual_connection": WeighedResidual(),
        "layer_drop": BlockMixture(),
    }
