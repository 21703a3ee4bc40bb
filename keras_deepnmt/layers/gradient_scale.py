"""Scaling of gradients (Gehring et al., 2017)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_number,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class GradientScale(keras.layers.Layer):
    """Returns its inputs unchanged and multiplies their gradient by a factor.

    If each of L decoder layers attends to the encoder, the encoder receives
    2 L gradients, through keys and values. Dividing by their number keeps the
    encoder's gradients at the scale of the decoder's.

    It computes:

        output = x,  d loss / d x = scale * d loss / d output

    as `stop_gradient(x) + scale * (x - stop_gradient(x))`, of which the second
    term is zero.
    Differs from the paper: the paper scales the gradients of the encoder's
    weights but not those of its input. For the same effect, put this layer
    after the encoder with `scale` and another one before it with `1 / scale`.
    Cost: no parameters.

    Args:
        scale: float. Factor of the gradient.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor of any shape.

    Returns:
        Float tensor, equal to `inputs`.

    Masking: passes the inputs' mask through.

    Example:
    >>> layer = keras_deepnmt.layers.GradientScale(0.1)
    >>> np.asarray(layer(np.array([3.0, 5.0]))).tolist()
    [3.0, 5.0]

    Reference:
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722). Released code:
          https://github.com/yanyao-shen/fairseq.
    """

    def __init__(self, scale, **kwargs):
        check_number("scale", scale)
        super().__init__(**kwargs)
        self.scale = scale
        self.supports_masking = True

    def call(self, inputs):
        constant = ops.stop_gradient(inputs)
        return constant + self.scale * (inputs - constant)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}
