"""Linear combination of several states (Dou et al., 2018, Eq. 5)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import common_shape
from keras_deepnmt.layers.keras_masks import first_mask


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LinearCombination(keras.layers.Layer):
    """Computes the sum of n states, each multiplied by its own matrix.

        y = W_1 x_1 + ... + W_n x_n        (Dou et al., 2018, Eq. 5)

    With `through_dim=F`, which is not in the paper, each W_j is a product
    `W_out W_j'` of matrices with F units between them. It has `n D^2` weights
    for states of width D, or `(n + 1) D F` with `through_dim`.
    """

    def __init__(self, through_dim=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.through_dim = through_dim

    def build(self, inputs_shape):
        shape = common_shape("inputs", inputs_shape)
        width, self.num_inputs = shape[-1], len(inputs_shape)
        inner = self.through_dim or width
        # [W_1; ...; W_n] as one matrix, for one product with all inputs.
        self.input_dense = self._make_dense("input", inner)
        self.input_dense.build((*shape[:-1], self.num_inputs * width))
        if self.through_dim is not None:
            self.output_dense = self._make_dense("output", width)
            self.output_dense.build((*shape[:-1], inner))

    def call(self, inputs):
        x = self.input_dense(ops.concatenate(inputs, axis=-1))
        return x if self.through_dim is None else self.output_dense(x)

    def input_matrices(self):
        """Returns a list of one tensor `(n, D, F)`, the inputs' matrices."""
        kernel = self.input_dense.kernel
        width = kernel.shape[0] // self.num_inputs
        return [ops.reshape(kernel, (self.num_inputs, width, -1))]

    def _make_dense(self, name, width):
        return keras.layers.Dense(
            width, use_bias=False, name=name, dtype=self.dtype_policy
        )

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape[0])

    def compute_mask(self, inputs, previous_mask=None):
        return first_mask(previous_mask)

    def get_config(self):
        return {**super().get_config(), "through_dim": self.through_dim}
