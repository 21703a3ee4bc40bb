"""Attention to all encoder layers (Shen et al., 2018, Eq. 9 and 10)."""

import keras

from keras_deepnmt.layers.argument_checks import check_choice, check_number
from keras_deepnmt.layers.dense_attention_memory import DenseAttentionMemory
from keras_deepnmt.layers.multi_step_attention import MultiStepAttention


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class DenseAttention(keras.layers.Layer):
    """Attends to all encoder layers, concatenated or each separately.

    This layer is the paper's complete DenseAtt: `DenseAttentionMemory`
    computes keys and values, and one `MultiStepAttention` reads them. In a
    decoder with several layers use these two instead: one memory, and one
    attention per decoder layer.

    Given new decoder features z, target embeddings e_t, encoder states h^i and
    source embeddings e it computes (Shen et al., 2018, Eq. 9 and 10), with
    `F(Q, K, V) = sqrt(S) softmax(Q K^T) V` for S real source positions:

        q = sqrt(1/2) (W_q z + b_q + e_t)
        variant 1:  K = W [h^L; ...; h^1] + b,  a = F(q, K, sqrt(1/2) (K + e))
        variant 2:  K_i = W_i h^i + b_i,
                    a = sqrt(1/n) sum_i F(q, K_i, sqrt(1/2) (K_i + e))
        output = W_o a + b_o

    Here `variant` is the number of the paper's DenseAtt.
    Differs from the paper: as its two parts do.
    Cost: the parameters of its two parts, O(B T n S D) time.

    Args:
        variant, gradient_scale: as in `DenseAttentionMemory`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, U)`, new features; with a static cache
            `(B*K, 1, U)`.
        target_embeddings: float tensor `(B, T, D)`; with a static cache
            `(B*K, 1, D)`.
        layer_states: list of float tensors `(B, S, D_i)` of the encoder,
            newest first. Ignored if a cache is passed.
        source_embeddings: float tensor `(B, S, D)`. Ignored if a cache is
            passed.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token. `None`
            means that all tokens are real.
        static_cache: dict from `static_cache`.
        return_attention_scores: bool. Whether to return the attention weights
            as well.

    Returns:
        Float tensor like `inputs`; then the attention weights `(B, n, T, S)`
        if `return_attention_scores=True`.

    Raises:
        ValueError: if `variant` is not 1 or 2; if target and source
            embeddings differ in width (at build); without states, embeddings
            and cache.

    Masking: uses `memory_padding_mask`, or else the mask that Keras attaches to
    `layer_states`; target positions are independent. The mask of `inputs` is
    attached to the output.

    Example:
    >>> attention = keras_deepnmt.layers.DenseAttention(variant=1)
    >>> target, source = np.zeros((3, 5, 7)), np.zeros((3, 13, 7))
    >>> attention(np.zeros((3, 5, 11)), target, [source, source], source).shape
    TensorShape([3, 5, 11])

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.2.
          Released code: https://github.com/yanyao-shen/fairseq.
    """

    def __init__(self, variant=2, gradient_scale=1.0, **kwargs):
        check_choice("variant", variant, (1, 2))
        check_number("gradient_scale", gradient_scale)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.variant = variant
        self.gradient_scale = gradient_scale

    def build(
        self,
        inputs_shape,
        target_embeddings_shape,
        layer_states_shape=None,
        source_embeddings_shape=None,
    ):
        if layer_states_shape is None or source_embeddings_shape is None:
            raise ValueError(
                "`layer_states` and `source_embeddings`, the states and "
                "embeddings of the encoder, must be passed in the first call. "
                f"Received: shapes {layer_states_shape} and "
                f"{source_embeddings_shape}."
            )
        widths = target_embeddings_shape[-1], source_embeddings_shape[-1]
        if widths[0] != widths[1]:
            raise ValueError(
                "`source_embeddings` must be as wide as `target_embeddings`. "
                "Received: source_embeddings_shape="
                f"{tuple(source_embeddings_shape)}, target_embeddings_shape="
                f"{tuple(target_embeddings_shape)}."
            )
        self.memory = DenseAttentionMemory(
            self.variant,
            self.gradient_scale,
            name="memory",
            dtype=self.dtype_policy,
        )
        self.memory.build(layer_states_shape, source_embeddings_shape)
        self.attention = MultiStepAttention(
            name="attention", dtype=self.dtype_policy
        )
        self.attention.build(
            inputs_shape, target_embeddings_shape, source_embeddings_shape
        )

    def call(
        self,
        inputs,
        target_embeddings,
        layer_states=None,
        source_embeddings=None,
        memory_padding_mask=None,
        static_cache=None,
        return_attention_scores=False,
    ):
        if static_cache is None:
            if layer_states is None or source_embeddings is None:
                raise ValueError(
                    "`layer_states` and `source_embeddings` must be passed, or "
                    "a `static_cache`. Received: static_cache=None."
                )
            static_cache = self.static_cache(layer_states, source_embeddings)
        return self.attention(
            inputs,
            target_embeddings,
            **static_cache,
            memory_padding_mask=memory_padding_mask,
            return_attention_scores=return_attention_scores,
        )

    def static_cache(self, layer_states, source_embeddings):
        """Computes keys and values once for all decoding steps and beams.

        Args:
            layer_states: list of float tensors `(B, S, D_i)`, newest first.
            source_embeddings: float tensor `(B, S, D)`.

        Returns:
            Dict `{"key", "value"}`, each `(B, n, S, D)`.
        """
        keys, values = self.memory(layer_states, source_embeddings)
        return {"key": keys, "value": values}

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def compute_output_spec(
        self,
        inputs,
        target_embeddings,
        layer_states=None,
        source_embeddings=None,
        memory_padding_mask=None,
        static_cache=None,
        return_attention_scores=False,
    ):
        if static_cache is None:
            key, value = self.memory.compute_output_spec(
                layer_states, source_embeddings
            )
            static_cache = {"key": key, "value": value}
        return self.attention.compute_output_spec(
            inputs,
            target_embeddings,
            **static_cache,
            return_attention_scores=return_attention_scores,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "variant": self.variant,
            "gradient_scale": self.gradient_scale,
        }
