"""Linear combination of several states (Dou et al., 2018, Eq. 5)."""

import keras
from keras import ops

from keras_deepnmt.layers.aggregation_options import common_shape


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LinearCombination(keras.layers.Layer):
    """Adds up states, each multiplied by its own matrix.

    For n inputs it computes (Dou et al., 2018, Eq. 5):

        y = W_1 x_1 + ... + W_n x_n

    With `through_dim=F` every W_j is a product `W_out W_j'` by way of F units.
    Differs from the paper: nothing without `through_dim`.
    Cost: `n D^2` weights, or `(n + 1) D F`.

    Args:
        through_dim: int. Units F between two matrices. Defaults to one matrix.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: list of n float tensors `(B, S, D)`.

    Returns:
        Float tensor `(B, S, D)`.

    Raises:
        ValueError: if the inputs differ in width (at build).

    Masking: position-wise, needs none.

    Example:
    >>> combination = LinearCombination()
    >>> combination([np.zeros((3, 5, 7)), np.ones((3, 5, 7))]).shape
    TensorShape([3, 5, 7])

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Section 3.1.
    """

    def __init__(self, through_dim=None, **kwargs):
        super().__init__(**kwargs)
        self.through_dim = through_dim

    def build(self, inputs_shape):
        shape = common_shape("inputs", inputs_shape)
        width, self.num_inputs = shape[-1], len(inputs_shape)
        inner = self.through_dim or width
        # [W_1; ...; W_n] in one matrix: one product with all inputs.
        self.input_dense = self._dense("input", inner)
        self.input_dense.build((*shape[:-1], self.num_inputs * width))
        if self.through_dim is not None:
            self.output_dense = self._dense("output", width)
            self.output_dense.build((*shape[:-1], inner))

    def call(self, inputs):
        x = self.input_dense(ops.concatenate(inputs, axis=-1))
        return x if self.through_dim is None else self.output_dense(x)

    def input_matrices(self):
        """Gives the matrix that each input meets.

        Returns:
            List of one float tensor `(n, D, F)`: entry j is that of input j.
        """
        kernel = self.input_dense.kernel
        width = kernel.shape[0] // self.num_inputs
        return [ops.reshape(kernel, (self.num_inputs, width, -1))]

    def _dense(self, name, width):
        return keras.layers.Dense(
            width, use_bias=False, name=name, dtype=self.dtype_policy
        )

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape[0])

    def get_config(self):
        return {**super().get_config(), "through_dim": self.through_dim}
