"""Decoder block of the Transformer (Vaswani et al., 2017, Section 3.1)."""

import keras

from keras_deepnmt.layers.transformer_encoder_block import (
    TransformerEncoderBlock,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class TransformerDecoderBlock(TransformerEncoderBlock):
    """Reads the target so far, then the source, then thinks about each.

    It computes (Vaswani et al., 2017, Figure 1, right):

        c = residual(x, causal attention(x, x, x))
        d = residual(c, attention(c, memory, memory))
        y = residual(d, FFN(d))

    Step by step it does the same with a cache of the past: `init_cache` makes
    what grows, `static_cache` what is computed once a sentence.
    Differs from the paper: nothing with the defaults; `self_attention` puts
    another layer in the self-attention's place.
    Cost: `8 D^2 + 2 D F` weights.

    Args:
        num_heads, intermediate_dim, self_attention, dropout,
        attention_dropout, activation, layer_norm_epsilon, normalize_first,
        key_bias, **kwargs: as in `TransformerEncoderBlock`.

    Call arguments:
        inputs: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        memory: float tensor `(B, S, D)`. Not read when a cache is passed.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token.
            Defaults to all real.
        static_cache: dict from `static_cache`.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this step.
        layer_states: as in `TransformerEncoderBlock`, each like `inputs`.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor like `inputs`; then the new cache iff one was passed.

    Masking: consumes `memory_padding_mask`; causal over the target.

    Example:
    >>> block = keras_deepnmt.layers.TransformerDecoderBlock(2, 16)
    >>> target, memory = np.zeros((3, 5, 8)), np.zeros((3, 7, 8))
    >>> block(target, memory).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.1.
    """

    def build(self, inputs_shape, memory_shape=None):
        super().build(inputs_shape)
        memory_shape = memory_shape or inputs_shape
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention.build(inputs_shape, memory_shape)
        self.cross_attention_residual = self._residual(
            "cross_attention_residual"
        )
        self.cross_attention_residual.build(inputs_shape)

    def call(
        self,
        inputs,
        memory=None,
        memory_padding_mask=None,
        static_cache=None,
        cache=None,
        cache_index=None,
        layer_states=None,
        training=None,
    ):
        # Self-attention
        if cache is None:
            x = self._attend(
                inputs, layer_states, use_causal_mask=True, training=training
            )
        else:
            x, cache = self._attend(
                inputs, layer_states, cache=cache, cache_index=cache_index
            )
        x = self.attention_residual(inputs, x, training=training)

        # Cross-attention
        mask = memory_padding_mask
        mask = None if mask is None else mask[:, None, :]  # (B, 1, S)
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
        return z if cache is None else (z, cache)

    def init_cache(self, batch_size, max_length):
        """Makes the empty self-attention cache of this block.

        Args:
            batch_size: int or scalar tensor. Rows B*K.
            max_length: int or scalar tensor. Positions M.

        Returns:
            What the self-attention layer's `init_cache` gives.
        """
        return self.attention.init_cache(batch_size, max_length)

    def static_cache(self, memory):
        """Projects the memory once, for all steps and beams.

        Args:
            memory: float tensor `(B, S, D)`.

        Returns:
            Dict `{"key", "value"}`, each `(B, N, S, H)`.
        """
        return self.cross_attention.static_cache(memory)

    def compute_output_shape(self, inputs_shape, memory_shape=None):
        return inputs_shape
