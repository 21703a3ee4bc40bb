"""Summary of a dense stack (Shen et al., 2018, Section 3.3)."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_integer,
    check_states,
)
from keras_deepnmt.layers.weight_normalized_dense import WeightNormalizedDense


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class SummaryLayer(keras.layers.Layer):
    """Replaces all features of a dense stack by one narrow vector per position.

    In a dense stack each layer reads the features of all layers below, whose
    number grows with the depth. Every few layers a summary projects all of
    them back to the initial width and adds the new ones; later layers read
    only the summary.

    Given all features x so far and m new ones y of width U (Shen et al., 2018,
    Section 3.3):

        output = sqrt(1/2) (W x + b + sqrt(1/m) (y_1 + ... + y_m))

    which has the variance of its terms. In the encoder m = 1 and y is a gated
    convolution of x; in the decoder m = 2, the convolution z and its attention.
    Here `units` is the width n of the layers.
    Differs from the paper: its text projects to the size of the embeddings; the
    width n is that of the released code, as is the equation.
    Without a projection this is the residual connection of Gehring et al.
    (2017), the baseline.
    Cost: `D U + 2 U` parameters, O(B T D U) time.

    Args:
        units: int. Width U of the output.
        use_projection: bool. Whether x is projected; otherwise its width must
            be U.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, all features so far.
        outputs: list of float tensors `(B, T, U)`, the new features.

    Returns:
        Float tensor `(B, T, U)`.

    Raises:
        ValueError: if the width of a new feature is not U, or, with
            `use_projection=False`, that of the inputs (at build).

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> summary = keras_deepnmt.layers.SummaryLayer(11)
    >>> old, new = np.zeros((3, 5, 7)), np.zeros((3, 5, 11))
    >>> summary(old, [new]).shape
    TensorShape([3, 5, 11])

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722). Released code:
          https://github.com/yanyao-shen/fairseq.
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    def __init__(self, units, use_projection=True, **kwargs):
        check_integer("units", units)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.use_projection = use_projection

    def build(self, inputs_shape, outputs_shape=None):
        if outputs_shape is not None:
            check_states("outputs", outputs_shape)
        widths = [shape[-1] for shape in outputs_shape or []]
        if any(width != self.units for width in widths):
            raise ValueError(
                "All `outputs` must have the width `units`. Received: "
                f"units={self.units} and outputs of widths {widths}."
            )
        if self.use_projection:
            self.projection = WeightNormalizedDense(
                self.units, name="projection", dtype=self.dtype_policy
            )
            self.projection.build(inputs_shape)
        elif inputs_shape[-1] != self.units:
            raise ValueError(
                "Without a projection `inputs` must have the width `units`. "
                f"Received: units={self.units} and inputs of width "
                f"{inputs_shape[-1]}. Pass use_projection=True."
            )

    def call(self, inputs, outputs):
        check_alike("outputs", outputs, "inputs", inputs)
        old = self.projection(inputs) if self.use_projection else inputs
        new = sum(outputs[1:], outputs[0]) * len(outputs) ** -0.5
        return (old + new) * 0.5**0.5

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return (*inputs_shape[:-1], self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "use_projection": self.use_projection,
        }
