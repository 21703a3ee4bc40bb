"""Attention per decoder layer (Gehring et al., 2017; Shen et al., 2018)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_mask,
    check_sequence,
)
from keras_deepnmt.layers.call_results import call_results
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.recording import record
from keras_deepnmt.layers.weight_normalized_dense import WeightNormalizedDense


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class MultiStepAttention(keras.layers.Layer):
    """Attends to the source from one layer of a convolutional decoder.

    Every layer of a convolutional decoder has its own attention, so that its
    query depends on what the layers below have attended to. Keys and values
    are the same for all layers and come from `DenseAttentionMemory`; this
    layer projects only queries and outputs.

    Given new features z of width U, target embeddings e and n pairs of keys
    and values of width D (Shen et al., 2018, Eq. 8 to 10) it computes, for S
    real source positions:

        q = sqrt(1/2) (W_q z + b_q + e)
        context = sqrt(1/n) sum_i sqrt(S) softmax(q K_i^T) V_i
        output = W_o context + b_o

    With n = 1 this is the multi-step attention of Gehring et al. (2017), or,
    with keys from concatenated layers, DenseAtt-1 (Eq. 9); with one pair for
    each encoder layer it is DenseAtt-2 (Eq. 10).
    Differs from the paper: Eq. 10 has no sqrt(1/n); it and the other square
    roots are those of the released code, where S counts padding too. Sentences
    without a real position have a context of zeros.
    Cost: `2 U D + 2 D + 2 U` parameters, O(B T n S D) time.

    Args:
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, U)`, new features; in incremental decoding
            `(B*K, 1, U)`.
        target_embeddings: float tensor `(B, T, D)`; in incremental decoding
            `(B*K, 1, D)`.
        key: float tensor `(B, n, S, D)`, or `(B, S, D)` for one pair.
        value: float tensor like `key`.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token. `None`
            means that all tokens are real.
        return_attention_scores: bool. Whether to return the attention weights
            as well.
        key_mask, value_mask: masks like `memory_padding_mask`, which Keras
            attaches to `key` and `value` and passes itself.

    Returns:
        Float tensor like `inputs`; then, if `return_attention_scores=True`,
        the attention weights `(B, n, T, S)`, in incremental decoding
        `(B, n, K, S)`.

    Raises:
        ValueError: if the width of keys or values is not that of the target
            embeddings (at build).

    Masking: uses `memory_padding_mask`, or else the mask that Keras attaches to
    `key` or `value`; target positions are independent. The mask of `inputs` is
    attached to the output.

    Example:
    >>> attention = keras_deepnmt.layers.MultiStepAttention()
    >>> states, embeddings = np.zeros((3, 5, 11)), np.zeros((3, 5, 7))
    >>> memory = np.zeros((3, 13, 7))
    >>> attention(states, embeddings, memory, memory).shape
    TensorShape([3, 5, 11])

    Reference:
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.2.
          Released code: https://github.com/yanyao-shen/fairseq.
    """

    def __init__(self, **kwargs):
        # Defined so that the signature is not that of `keras.layers.Layer`.
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(
        self,
        inputs_shape,
        target_embeddings_shape,
        key_shape=None,
        value_shape=None,
    ):
        check_sequence("inputs", inputs_shape)
        check_sequence("target_embeddings", target_embeddings_shape)
        units, width = inputs_shape[-1], target_embeddings_shape[-1]
        for name, shape in (("key", key_shape), ("value", value_shape)):
            if shape is not None and shape[-1] != width:
                raise ValueError(
                    f"`{name}` must be as wide as `target_embeddings`. "
                    f"Received: {name}_shape={tuple(shape)}, "
                    f"target_embeddings_shape={tuple(target_embeddings_shape)}."
                )
        self.query_projection = self._make_projection("query", width)
        self.query_projection.build(inputs_shape)
        self.output_projection = self._make_projection("output", units)
        self.output_projection.build(target_embeddings_shape)

    def call(
        self,
        inputs,
        target_embeddings,
        key,
        value,
        memory_padding_mask=None,
        return_attention_scores=False,
        key_mask=None,
        value_mask=None,
    ):
        check_alike("target_embeddings", [target_embeddings], "inputs", inputs)
        num_axes = len(key.shape) - 1
        check_alike("value", [value], "key", key, num_axes)
        shape = (key.shape[0], key.shape[-2])
        check_mask("memory_padding_mask", memory_padding_mask, shape)
        memory_padding_mask = first_mask(
            memory_padding_mask, key_mask, value_mask
        )
        if len(key.shape) == 3:
            key, value = ops.expand_dims(key, 1), ops.expand_dims(value, 1)
        query = self.query_projection(inputs) + target_embeddings
        # Beams become queries of one sentence: (B*K, 1, D) -> (B, K, D)
        query = ops.reshape(
            query * 0.5**0.5, (ops.shape(key)[0], -1, query.shape[-1])
        )
        # Concatenates the pairs, so that no product needs a transposition.
        num_pairs, width = key.shape[1], key.shape[-1]
        key, value = (
            ops.reshape(part, (ops.shape(part)[0], -1, width))
            for part in (key, value)
        )  # (B, n S, D)
        weights = _compute_weights(query, key, num_pairs, memory_padding_mask)
        weights = ops.cast(weights, self.compute_dtype)  # (B, T, n, S)
        # A pair of keys and values has the place of a head: (B, n, T, S).
        record(self, "weights", lambda: ops.moveaxis(weights, 2, 1))
        flat = ops.reshape(weights, (*ops.shape(query)[:2], -1))
        context = ops.matmul(flat, value)  # (B, T, D), Eq. 8 to 10
        factor = _compute_variance_factor(
            weights, num_pairs, memory_padding_mask
        )
        context = context * ops.cast(factor, self.compute_dtype)
        output = ops.reshape(self.output_projection(context), ops.shape(inputs))
        scores = None
        if return_attention_scores:
            scores = ops.transpose(weights, (0, 2, 1, 3))
        return call_results(output, extra=scores)

    def _make_projection(self, name, units):
        return WeightNormalizedDense(
            units, name=f"{name}_projection", dtype=self.dtype_policy
        )

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def compute_output_spec(
        self,
        inputs,
        target_embeddings,
        key,
        value,
        memory_padding_mask=None,
        return_attention_scores=False,
        *args,
        **kwargs,
    ):
        # Of a step, the hypotheses of a sentence are the queries.
        num_queries = None if inputs.shape[1] == 1 else inputs.shape[1]
        num_pairs = 1 if len(key.shape) == 3 else key.shape[1]
        output, scores = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in (
                inputs.shape,
                (key.shape[0], num_pairs, num_queries, key.shape[-2]),
            )
        )
        return call_results(
            output, extra=scores if return_attention_scores else None
        )


def _compute_weights(query, key, num_pairs, real):
    """Computes attention weights `(B, T, n, S)` in float32, 0 at padding."""
    logits = ops.matmul(query, ops.transpose(key, (0, 2, 1)))  # (B, T, n S)
    shape = ops.shape(logits)
    length = shape[2] // num_pairs
    logits = ops.reshape(logits, (*shape[:2], num_pairs, length))
    logits = ops.cast(logits, "float32")
    if real is not None:
        real = ops.expand_dims(real, (1, 2))
        logits = ops.where(real, logits, -1e9)
    if logits.shape[-1] == 1:
        # A softmax over one entry is 1, and Keras would warn about it.
        weights = ops.ones_like(logits)
    else:
        weights = ops.softmax(logits, axis=-1)
    # Without a real token the softmax is uniform over the padding.
    return weights if real is None else ops.where(real, weights, 0.0)


def _compute_variance_factor(weights, num_pairs, real):
    """Computes sqrt(S / n), which restores the variance after averaging."""
    length = ops.shape(weights)[3]
    if real is not None:
        length = ops.sum(ops.cast(real, "float32"), axis=-1)  # (B,)
        length = ops.expand_dims(length, (1, 2))
    return ops.sqrt(ops.cast(length, "float32") / num_pairs)
