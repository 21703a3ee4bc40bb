"""Decoder block of convolutional models (Shen et al., 2018)."""

import keras

from keras_deepnmt.layers.conv_encoder_block import ConvEncoderBlock
from keras_deepnmt.layers.multi_step_attention import MultiStepAttention


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvDecoderBlock(ConvEncoderBlock):
    """Applies a causal gated convolution, then attends to the source.

    Like `ConvEncoderBlock`, but the convolution sees no later target token and
    the block has its own attention to the source. Given states x^1, x^2, ...
    it computes (Shen et al., 2018, Eq. 7 and 8, Section 3.3),
    x = [x^1; x^2; ...]:

        z = GLU(causal convolution(dropout(x)))
        a = attention(z)
        residual:  sqrt(1/2) (x + sqrt(1/2) (a + z))
        dense:     z, a, x^1, x^2, ...
        summary:   sqrt(1/2) (W x + b + sqrt(1/2) (a + z))

    In incremental decoding the cache holds the last k - 1 inputs of the
    convolution; its size does not depend on the target length.
    Differs from the paper: as `ConvEncoderBlock` and `MultiStepAttention` do.
    Cost: the sum of `ConvEncoderBlock` and `MultiStepAttention`.

    Args:
        filters, connection, kernel_size, dropout, **kwargs: as in
            `ConvEncoderBlock`.

    Call arguments:
        layer_states: list of float tensors `(B, T, D_i)`, newest first;
            with a cache `(B*K, 1, D_i)`.
        target_embeddings: float tensor `(B, T, D)`; with a cache
            `(B*K, 1, D)`.
        key, value: float tensors `(B, n, S, D)` from `DenseAttentionMemory`.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token. `None`
            means that all tokens are real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Ignored: the cache needs no position.
        training: bool. Whether dropout is active.

    Returns:
        List of float tensors: one new state `(B, T, U)`, or with `"dense"` two
        new states followed by `layer_states`. Then the new cache if one was
        passed.

    Raises:
        ValueError: as in `ConvEncoderBlock` and `MultiStepAttention`.

    Masking: causal over the target; uses `memory_padding_mask`, or else the
    mask that Keras attaches to `key` or `value`.

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
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of rows, B*K.
            max_length: int or scalar tensor. Ignored.

        Returns:
            The cache of `GatedConvolution.init_cache`.
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
