"""Sinusoidal position encoding (Vaswani et al., 2017, Section 3.5)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_positive,
    check_sequence,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class SinusoidalPositionEncoding(keras.layers.Layer):
    """Adds a fixed pattern of sines and cosines to each position.

    Attention does not know the order of its inputs; waves of D / 2 frequencies
    encode it, for any length and without parameters. It computes
    (Vaswani et al., 2017, Section 3.5):

        output[t, i]         = inputs[t, i]         + sin(t / r^(i / (D/2 - 1)))
        output[t, i + D / 2] = inputs[t, i + D / 2] + cos(t / r^(i / (D/2 - 1)))

    for i < D / 2; `max_wavelength` is the paper's 10000, r.
    Differs from the paper: sines come first and cosines after them, and the
    exponent's last value is 1, as in the authors' own code (tensor2tensor);
    the paper interleaves them, which only permutes the channels.
    Cost: no parameters, O(T D) time.

    Args:
        max_wavelength: float. Longest wavelength divided by 2 pi, in positions.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`.
        start_index: int scalar tensor. Position of the first input, for
            incremental decoding. Defaults to `0`.

    Returns:
        Float tensor `(B, T, D)`.

    Raises:
        ValueError: if the width D is odd (at build).

    Masking: passes the inputs' mask through.

    Example:
    >>> layer = keras_deepnmt.layers.SinusoidalPositionEncoding()
    >>> np.asarray(layer(np.zeros((1, 1, 4), "float32")))[0, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.5.
    """

    slots = ("position_encoding",)

    def __init__(self, max_wavelength=10_000.0, **kwargs):
        check_positive("max_wavelength", max_wavelength)
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength
        self.supports_masking = True

    def build(self, inputs_shape):
        check_sequence("inputs", inputs_shape)
        if inputs_shape[-1] % 2:
            raise ValueError(
                "`inputs` must have an even width. "
                f"Received: inputs_shape={inputs_shape}."
            )

    def call(self, inputs, start_index=0):
        half = inputs.shape[-1] // 2
        exponents = ops.arange(half, dtype="float32") / max(half - 1, 1)
        frequencies = self.max_wavelength**-exponents  # (D/2,)
        positions = ops.arange(ops.shape(inputs)[1], dtype="int32")
        # TensorFlow adds no integers of two types.
        positions = positions + ops.cast(start_index, "int32")
        positions = ops.cast(positions, "float32")
        angles = ops.expand_dims(positions, 1) * frequencies  # (T, D/2)
        waves = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return inputs + ops.cast(waves, inputs.dtype)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
        }
