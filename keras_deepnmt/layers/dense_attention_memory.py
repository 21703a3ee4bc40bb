"""Keys and values for all decoder layers (Shen et al., 2018, Eq. 9 and 10)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_number,
    check_sequence,
    check_states,
)
from keras_deepnmt.layers.gradient_scale import GradientScale
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.weight_normalized_dense import WeightNormalizedDense


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class DenseAttentionMemory(keras.layers.Layer):
    """Computes attention keys and values from all encoder layers.

    A decoder that attends to the last encoder layer alone cannot read directly
    what lower layers represent. Here all encoder layers become keys, either
    concatenated or each separately; the values are the keys plus the source
    embeddings. They are computed once per sentence and shared by all decoder
    layers, which read them with `MultiStepAttention`.

    Given encoder states h^1 to h^L, newest first, and source embeddings e
    of width D it computes (Shen et al., 2018, Eq. 9 and 10):

        variant 1:  K = W [h^L; ...; h^1] + b,   V = sqrt(1/2) (K + e)
        variant 2:  K_i = W_i h^i + b_i,         V_i = sqrt(1/2) (K_i + e)

    Here `variant` is the number of the paper's DenseAtt. With the state of the
    last layer alone, both are the memory of Gehring et al. (2017).
    Differs from the paper: there V has a projection of its own, and adds a
    projected h^0 (Eq. 9) or projects [h^i; h^0] (Eq. 10); here both variants
    have the V of the released code, whose states include the last summary or
    the first layer's input.
    Cost: `D (D_1 + ... + D_L) + 2 n D` parameters for n = 1 or L pairs.

    Args:
        variant: 1 for one pair of keys and values from the concatenated
            states, 2 for one pair from each state.
        gradient_scale: float. Factor of the gradient that flows back through
            the keys, see `GradientScale`. The released code uses `1 / (2 L)`
            for L decoder layers with variant 1.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D_i)`, newest first.
        source_embeddings: float tensor `(B, S, D)`.

    Returns:
        List of two float tensors, keys and values, each `(B, n, S, D)`.

    Raises:
        ValueError: if `variant` is not 1 or 2.

    Masking: passes the states' mask through to the attention, which masks the
    padded positions.

    Example:
    >>> memory = keras_deepnmt.layers.DenseAttentionMemory(variant=2)
    >>> states = [np.zeros((3, 5, width)) for width in (11, 11, 7)]
    >>> [tuple(part.shape) for part in memory(states, states[-1])]
    [(3, 3, 5, 7), (3, 3, 5, 7)]

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.2.
          Released code: https://github.com/yanyao-shen/fairseq.
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    def __init__(self, variant=2, gradient_scale=1.0, **kwargs):
        check_choice("variant", variant, (1, 2))
        check_number("gradient_scale", gradient_scale)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.variant = variant
        self.gradient_scale = gradient_scale

    def build(self, layer_states_shape, source_embeddings_shape):
        check_states("layer_states", layer_states_shape)
        check_sequence("source_embeddings", source_embeddings_shape)
        widths = [shape[-1] for shape in layer_states_shape]
        if self.variant == 1:
            widths = [sum(widths)]
        self.projections = []
        for number, width in enumerate(widths, 1):
            projection = WeightNormalizedDense(
                source_embeddings_shape[-1],
                name=f"projection_{number}",
                dtype=self.dtype_policy,
            )
            projection.build((*source_embeddings_shape[:-1], width))
            self.projections.append(projection)
        self.gradient_scale_layer = GradientScale(
            self.gradient_scale, name="gradient_scale", dtype=self.dtype_policy
        )

    def call(self, layer_states, source_embeddings):
        check_alike(
            "layer_states",
            layer_states,
            "source_embeddings",
            source_embeddings,
        )
        if self.variant == 1:
            layer_states = [ops.concatenate(layer_states, axis=-1)]
        projected = [
            projection(state)
            for projection, state in zip(
                self.projections, layer_states, strict=True
            )
        ]
        keys = ops.stack(projected, axis=1)  # (B, n, S, D)
        keys = self.gradient_scale_layer(keys)
        values = (keys + ops.expand_dims(source_embeddings, 1)) * 0.5**0.5
        return [keys, values]  # Eq. 9, 10

    def compute_output_shape(self, layer_states_shape, source_embeddings_shape):
        num_pairs = 1 if self.variant == 1 else len(layer_states_shape)
        rows, *others = source_embeddings_shape
        return [(rows, num_pairs, *others)] * 2

    def compute_mask(self, layer_states, previous_mask=None):
        return [first_mask(previous_mask)] * 2

    def get_config(self):
        return {
            **super().get_config(),
            "variant": self.variant,
            "gradient_scale": self.gradient_scale,
        }
