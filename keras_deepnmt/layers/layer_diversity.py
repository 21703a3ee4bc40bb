"""Auxiliary loss for the diversity of layers (Dou et al., 2018, Eq. 9-10)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_mask,
    check_minimum,
    check_states,
)
from keras_deepnmt.layers.keras_masks import first_mask

# Avoids a division by zero for states that are all zeros.
EPSILON = 1e-8


def diversity(layer_states):
    """Measures how much the directions of adjacent layers differ.

    At each position it returns the mean of `1 - cos^2(h^l, h^(l+1))` over
    adjacent layers (Dou et al., 2018, Eq. 10), a float32 tensor `(B, S)`: 0 if
    each state is a multiple of the one below, 1 if it is orthogonal to it.
    """
    if len(layer_states) < 2:
        raise ValueError(
            "`layer_states` must hold at least two states. "
            f"Received: {len(layer_states)} states."
        )
    # In half precision the squares would overflow.
    layer_states = [ops.cast(state, "float32") for state in layer_states]
    total = 0.0
    for lower, upper in zip(layer_states[:-1], layer_states[1:], strict=True):
        dot = ops.sum(lower * upper, axis=-1)  # (B, S)
        lengths = ops.sum(lower**2, axis=-1) * ops.sum(upper**2, axis=-1)
        total = total + 1.0 - dot**2 / (lengths + EPSILON)
    return total / (len(layer_states) - 1)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LayerDiversity(keras.layers.Layer):
    """Adds an auxiliary loss that rewards differences between adjacent layers.

    Combining layers helps only if they represent different things. This loss
    decreases as the states of each layer turn away from those of the layer
    below. The output of the stack is not changed.

    Given states `h^l_n` of layer l at position n it adds
    (Dou et al., 2018, Eq. 9-10):

        loss = -weight * 1 / (L - 1) sum_l D(H^l, H^(l+1))
        D(H^l, H^(l+1)) = 1 / N sum_n (1 - cos^2(h^l_n, h^(l+1)_n))

    Here `weight` is the paper's lambda, N the number of real positions.
    Differs from the paper: the sign, since Keras minimizes. Not in the paper:
    1e-8 is added to the product of the squared lengths; padding does not count;
    a model adds the losses of both stacks. In a model h^l is the output of
    block l, even if an aggregation returns another state: with dense
    aggregation it is the state before the sum of Eq. 4.
    Cost: no parameters, O(L B S D) time.

    Args:
        weight: float, at least 0. Factor of the loss. Defaults to `1.0`.
        reduction: `"mean"` over the real positions, or `"sum"` if the training
            step divides by the number of real positions in the whole batch, as
            the models of this package do.
        positions: `"source"` or `"target"`: the side whose number of real
            positions the training step divides by.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D)`, the outputs of the
            blocks, without the embedding. A single one adds no loss.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        mask: list of masks like `padding_mask`, which Keras attaches to the
            states and passes itself.

    Returns:
        Float tensor `(B, S, D)`: the last state, unchanged.

    Raises:
        ValueError: for an unknown option or a negative `weight`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    states; padding does not count.

    Example:
    >>> layer = keras_deepnmt.layers.LayerDiversity()
    >>> _ = layer([np.array([[[1.0, 0.0]]]), np.array([[[0.0, 2.0]]])])
    >>> [float(loss) for loss in layer.losses]
    [-1.0]

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Section 3.2.
    """

    slots = ("layer_diversity",)

    def __init__(
        self, weight=1.0, reduction="mean", positions="target", **kwargs
    ):
        check_choice("reduction", reduction, ("mean", "sum"))
        check_choice("positions", positions, ("source", "target"))
        check_minimum("weight", weight, 0)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.weight = weight
        self.reduction = reduction
        self.positions = positions

    def build(self, layer_states_shape):
        check_states("layer_states", layer_states_shape)

    def call(self, layer_states, padding_mask=None, mask=None):
        check_alike(
            "layer_states", layer_states, "layer_states", layer_states[-1]
        )
        check_mask("padding_mask", padding_mask, layer_states[-1].shape[:2])
        padding_mask = first_mask(padding_mask, mask)
        if len(layer_states) > 1:
            values = diversity(layer_states)  # (B, S), Eq. 10
            if padding_mask is None:
                padding_mask = ops.ones_like(values, dtype="bool")
            total = ops.sum(ops.where(padding_mask, values, 0.0))
            if self.reduction == "mean":
                count = ops.sum(ops.cast(padding_mask, "float32"))
                total = total / ops.maximum(count, 1.0)
            self.add_loss(-self.weight * total)  # Eq. 9
        return layer_states[-1]

    def compute_output_shape(self, layer_states_shape):
        return tuple(layer_states_shape[-1])

    def compute_mask(self, layer_states, previous_mask=None):
        return first_mask(previous_mask)

    def get_config(self):
        return {
            **super().get_config(),
            "weight": self.weight,
            "reduction": self.reduction,
            "positions": self.positions,
        }
