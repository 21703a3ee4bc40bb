"""Decoder block of the Transformer (Vaswani et al., 2017, Section 3.1)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_mask
from keras_deepnmt.layers.cloning import prototype_config
from keras_deepnmt.layers.recording import record
from keras_deepnmt.layers.transformer_encoder_block import (
    TransformerEncoderBlock,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class TransformerDecoderBlock(TransformerEncoderBlock):
    """Applies self-attention, cross-attention, then a feed-forward network.

    It computes (Vaswani et al., 2017, Figure 1, right):

        c = residual(x, causal attention(x, x, x))
        d = residual(c, attention(c, memory, memory))
        y = residual(d, FFN(d))

    In incremental decoding, `init_cache` creates the cache of the target, to
    which each step adds a position, and `static_cache` the cache of the
    source, which is computed once per sentence.
    Differs from the paper: as `TransformerEncoderBlock`; `self_attention` and
    `cross_attention` replace the two attentions by other layers, and
    `residual_connection` what is around each sub-layer.
    Cost: `8 D^2 + 2 D F` weights.

    Args:
        num_heads, intermediate_dim, self_attention, dropout,
        attention_dropout, activation, layer_norm_epsilon, normalize_first,
        key_bias, attention_initializer, relative_position, residual_connection,
        kernel_initializer, **kwargs: as in `TransformerEncoderBlock`.
        cross_attention: unbuilt layer that is called as `MultiHeadAttention`
            with query, value and `attention_mask=`, with a `static_cache` of
            the value, and is cloned; or `None` for `MultiHeadAttention`. It
            keeps its own options, as a layer in `self_attention` does.

    Call arguments:
        inputs: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        memory: float tensor `(B, S, D)`. Optional only if a static cache is
            passed, with which it is ignored.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token. `None`
            means that all tokens are real.
        static_cache: dict from `static_cache`.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        history_mask: bool tensor `(B, K, M*K)`: which slots of the cache each
            hypothesis attends to, see `MultiHeadAttention`.
        layer_states: as in `TransformerEncoderBlock`, each like `inputs`.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor like `inputs`; then the new cache if one was passed.

    Raises:
        ValueError: as `TransformerEncoderBlock`; at call, without `memory` and
            `static_cache`.

    Masking: causal over the target; uses `memory_padding_mask` and the masks
    that Keras attaches to the inputs and the memory. The inputs' mask is
    attached to the output.

    Example:
    >>> block = keras_deepnmt.layers.TransformerDecoderBlock(2, 16)
    >>> target, memory = np.zeros((3, 5, 8)), np.zeros((3, 7, 8))
    >>> block(target, memory).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.1.
    """

    # One by one, so that the signature names every key of the configuration.
    def __init__(
        self,
        num_heads,
        intermediate_dim,
        self_attention=None,
        dropout=0.1,
        attention_dropout=0.0,
        activation="relu",
        layer_norm_epsilon=1e-6,
        normalize_first=False,
        key_bias=False,
        attention_initializer=None,
        relative_position=None,
        residual_connection=None,
        kernel_initializer=None,
        cross_attention=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            self_attention,
            dropout,
            attention_dropout,
            activation,
            layer_norm_epsilon,
            normalize_first,
            key_bias,
            attention_initializer,
            relative_position,
            residual_connection,
            kernel_initializer,
            **kwargs,
        )
        # Its layers cast what they read. A cache may have another type: Keras
        # would round a sum of all positions to half precision in each step.
        self.autocast = False
        # Not `cross_attention`: the weights are in files under that name.
        self.cross_attention_config = prototype_config(cross_attention)

    def build(self, inputs_shape, memory_shape=None):
        super().build(inputs_shape)
        memory_shape = memory_shape or inputs_shape
        self.cross_attention = self._make_attention(
            "cross_attention", self.cross_attention_config
        )
        self._build_part("cross_attention", inputs_shape, memory_shape)

    def call(
        self,
        inputs,
        memory=None,
        memory_padding_mask=None,
        static_cache=None,
        cache=None,
        cache_index=None,
        history_mask=None,
        layer_states=None,
        training=None,
    ):
        _check_memory(memory, static_cache)
        # Self-attention
        if cache is None:
            x = self._attend(
                inputs, layer_states, use_causal_mask=True, training=training
            )
        else:
            options = {"cache": cache, "cache_index": cache_index}
            if history_mask is not None:
                options["attention_mask"] = history_mask
            x, cache = self._attend(inputs, layer_states, **options)
        x = self.attention_residual(inputs, x, training=training)

        # Cross-attention
        mask = memory_padding_mask
        if mask is not None:
            if static_cache is None:
                check_mask("memory_padding_mask", mask, memory.shape[:2])
            elif "key" in static_cache:
                shape = static_cache["key"].shape[::2]  # (B, S)
                check_mask("memory_padding_mask", mask, shape)
            mask = ops.expand_dims(mask, 1)  # (B, 1, S)
        y = self.cross_attention_residual.before(x)
        if static_cache is None:
            y = self.cross_attention(
                y, memory, attention_mask=mask, training=training
            )
        else:
            y, _ = self.cross_attention(
                y, attention_mask=mask, cache=static_cache
            )
        y = self.cross_attention_residual(x, y, training=training)

        # Feed-forward network
        z = self.feed_forward(self.feed_forward_residual.before(y))
        z = self.feed_forward_residual(y, z, training=training)
        record(self, "output", z)  # (B, T, D)
        return z if cache is None else (z, cache)

    @property
    def keeps_history(self):
        """Whether the hypotheses of a sentence can share its cache."""
        return getattr(self.attention, "keeps_history", False)

    def init_cache(self, batch_size, max_length, num_beams=1):
        """Creates an empty self-attention cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of sentences B; if the
                self-attention has no `keeps_history`, of hypotheses B*K.
            max_length: int or scalar tensor. Number of positions M.
            num_beams: int or scalar tensor. Number of hypotheses K of each
                sentence; 1 if the self-attention has no `keeps_history`.

        Returns:
            The cache of the self-attention layer's `init_cache`.
        """
        beams = (num_beams,) if self.keeps_history else ()
        return self.attention.init_cache(batch_size, max_length, *beams)

    def static_cache(self, memory):
        """Computes keys and values once for all decoding steps and beams.

        Args:
            memory: float tensor `(B, S, D)`.

        Returns:
            As `MultiHeadAttention.static_cache`.
        """
        return self.cross_attention.static_cache(memory)

    def compute_output_shape(self, inputs_shape, memory_shape=None):
        return inputs_shape

    def compute_output_spec(
        self,
        inputs,
        memory=None,
        memory_padding_mask=None,
        static_cache=None,
        cache=None,
        *args,
        **kwargs,
    ):
        # Keras does not run `call` while a functional model is made.
        _check_memory(memory, static_cache)
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        return output if cache is None else (output, cache)

    def get_config(self):
        return {
            **super().get_config(),
            "cross_attention": self.cross_attention_config,
        }


def _check_memory(memory, static_cache):
    # Cross-attention would read its query, the future included.
    if memory is None and static_cache is None:
        raise ValueError(
            "`memory`, the output of the encoder, must be passed, or a "
            "`static_cache`: cross-attention reads it. "
            "Received: memory=None, static_cache=None."
        )
