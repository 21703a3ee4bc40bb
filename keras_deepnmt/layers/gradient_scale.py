"""Gradients of another size than the loss gives (Gehring et al., 2017)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class GradientScale(keras.layers.Layer):
    """Hands its inputs on, and a fraction of the gradient back.

    In a decoder of L layers with an attention each, an encoder receives 2 L
    gradients, through keys and through values. Divided by their number, they
    leave the encoder at the pace of the decoder.

    It computes:

        output = x,  d loss / d x = scale * d loss / d output

    as `stop_gradient(x) + scale * (x - stop_gradient(x))`, of which the second
    term is zero.
    Differs from the paper: there the gradients of the encoder's weights are
    scaled and those of its input are not. This layer behind the encoder with
    `scale` and another one before it with `1 / scale` do the same.
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
