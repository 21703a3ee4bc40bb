"""Decoder block of convolutional translators (Shen et al., 2018)."""

import keras

from keras_deepnmt.layers.conv_encoder_block import ConvEncoderBlock
from keras_deepnmt.layers.multi_step_attention import MultiStepAttention


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvDecoderBlock(ConvEncoderBlock):
    """Adds what is found in the target so far, and then in the source.

    As `ConvEncoderBlock`, with a convolution that sees no later target word
    and an attention of its own. Given states x^1, x^2, ... it computes (Shen
    et al., 2018, Eq. 7 and 8, Section 3.3), x = [x^1; x^2; ...]:

        z = GLU(causal convolution(dropout(x)))
        a = attention(z)
        residual:  sqrt(1/2) (x + sqrt(1/2) (a + z))
        dense:     z, a, x^1, x^2, ...
        summary:   sqrt(1/2) (W x + b + sqrt(1/2) (a + z))

    Step by step it does the same with a cache of the last k - 1 inputs of the
    convolution, however long the target is.
    Differs from the paper: as `ConvEncoderBlock` and `MultiStepAttention`.
    Cost: as `ConvEncoderBlock` and `MultiStepAttention`.

    Args:
        filters, connection, kernel_size, dropout, **kwargs: as in
            `ConvEncoderBlock`.

    Call arguments:
        layer_states: list of float tensors `(B, T, D_i)`, the newest first;
            with a cache `(B*K, 1, D_i)`.
        target_embeddings: float tensor `(B, T, D)`; with a cache
            `(B*K, 1, D)`.
        key, value: float tensors `(B, n, S, D)` of `DenseAttentionMemory`.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token.
            Defaults to all real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Not needed: the cache is the past.
        training: bool. Whether dropout is active.

    Returns:
        List of float tensors: the new states `(B, T, U)`, two with `"dense"`,
        which has all others after them; then the new cache iff one was passed.

    Raises:
        ValueError: as in `ConvEncoderBlock` and `MultiStepAttention`.

    Masking: consumes `memory_padding_mask`; causal over the target.

    Example:
    >>> block = keras_deepnmt.layers.ConvDecoderBlock(5, "dense")
    >>> states = [np.zeros((3, 7, 11), "float32")]
    >>> embeddings, memory = np.zeros((3, 7, 2)), np.zeros((3, 1, 13, 2))
    >>> states = block(states, embeddings, memory, memory)
    >>> [tuple(state.shape) for state in states]
    [(3, 7, 5), (3, 7, 5), (3, 7, 11)]

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    PADDING = "causal"

    def build(
        self,
        layer_states_shape,
        target_embeddings_shape,
        key_shape=None,
        value_shape=None,
    ):
        super().build(layer_states_shape)
        self.attention = MultiStepAttention(
            name="attention", dtype=self.dtype_policy
        )
        self.attention.build(
            (*layer_states_shape[0][:-1], self.filters),
            target_embeddings_shape,
            key_shape,
            value_shape,
        )

    def call(
        self,
        layer_states,
        target_embeddings,
        key,
        value,
        memory_padding_mask=None,
        cache=None,
        cache_index=None,
        training=None,
    ):
        z = self.convolution(layer_states, cache=cache, training=training)
        if cache is not None:
            z, cache = z
        a = self.attention(
            z,
            target_embeddings,
            key,
            value,
            memory_padding_mask=memory_padding_mask,
        )
        layer_states = self._connect([z, a], layer_states)  # Eq. 7
        return layer_states if cache is None else (layer_states, cache)

    def init_cache(self, batch_size, max_length):
        """Makes the cache of a sentence's beginning.

        Args:
            batch_size: int or scalar tensor. Rows B*K.
            max_length: int or scalar tensor. Not needed.

        Returns:
            What the convolution's `init_cache` gives.
        """
        return self.convolution.init_cache(batch_size, max_length)

    def compute_output_shape(
        self,
        layer_states_shape,
        target_embeddings_shape=None,
        key_shape=None,
        value_shape=None,
    ):
        newest, *others = super().compute_output_shape(layer_states_shape)
        if self.connection == "dense":
            return [newest, newest, *others]
        return [newest]
