"""Learned position embedding (Gehring et al., 2017, Section 3.1)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_integer,
    check_minimum,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LearnedPositionEmbedding(keras.layers.Layer):
    """Looks up a learned vector for each position.

    It computes, for position t of the inputs (Gehring et al., 2017, Section
    3.1), from a table P of `max_length` rows:

        output[t] = P[min(start_index + t, max_length - 1)]

    The vectors are not added to the inputs, so that a model can project them
    first, unless `add_to_inputs`.
    Differs from the paper: positions beyond the table use its last row; the
    released code fails there.
    Cost: `M D` parameters, M = `max_length`.

    Args:
        max_length: int. Number of rows of the table.
        stddev: float. Standard deviation of the normal distribution from which
            the table is initialized.
        add_to_inputs: bool. Whether the output is the sum of the inputs and
            their vectors, as that of `SinusoidalPositionEncoding`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, of which only the shape is used
            without `add_to_inputs`.
        start_index: int scalar tensor. Position of the first input, for
            incremental decoding. Defaults to `0`.

    Returns:
        Float tensor `(1, T, D)`, the same for all sentences; `(B, T, D)` with
        `add_to_inputs`.

    Raises:
        ValueError: if `max_length` is below 1.

    Masking: none; with `add_to_inputs` it passes the inputs' mask through.

    Example:
    >>> layer = keras_deepnmt.layers.LearnedPositionEmbedding(5)
    >>> layer(np.zeros((3, 7, 11))).shape
    TensorShape([1, 7, 11])

    Reference:
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    slots = ("position_encoding",)

    def __init__(self, max_length, stddev=0.1, add_to_inputs=False, **kwargs):
        check_integer("max_length", max_length)
        check_minimum("stddev", stddev, 0)
        super().__init__(**kwargs)
        self.max_length = max_length
        self.stddev = stddev
        self.add_to_inputs = add_to_inputs
        self.supports_masking = add_to_inputs

    def build(self, inputs_shape):
        self.table = keras.layers.Embedding(
            self.max_length,
            inputs_shape[-1],
            embeddings_initializer=keras.initializers.RandomNormal(
                stddev=self.stddev
            ),
            name="table",
            dtype=self.dtype_policy,
        )
        self.table.build((1, None))

    def call(self, inputs, start_index=0):
        positions = ops.arange(ops.shape(inputs)[1], dtype="int32")
        # TensorFlow adds no integers of two types.
        positions = positions + ops.cast(start_index, "int32")
        positions = ops.minimum(positions, self.max_length - 1)
        vectors = self.table(ops.expand_dims(positions, 0))  # (1, T, D)
        return inputs + vectors if self.add_to_inputs else vectors

    def compute_output_shape(self, inputs_shape):
        if self.add_to_inputs:
            return tuple(inputs_shape)
        return (1, *inputs_shape[1:])

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "stddev": self.stddev,
            "add_to_inputs": self.add_to_inputs,
        }
