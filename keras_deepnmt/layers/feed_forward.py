"""Position-wise feed-forward network (Vaswani et al., 2017, Eq. 2)."""

import keras

from keras_deepnmt.layers.argument_checks import check_integer
from keras_deepnmt.layers.cloning import clone_initializer
from keras_deepnmt.layers.dense_rows import apply_to_rows
from keras_deepnmt.layers.initial_kernels import make_dense


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class FeedForward(keras.layers.Layer):
    """Applies a network with one hidden layer to each position separately.

    Attention mixes positions but is linear in the values; this network is the
    non-linear transformation of each position in a Transformer. It computes
    (Vaswani et al., 2017, Eq. 2):

        FFN(x) = W_2 activation(W_1 x + b_1) + b_2

    Here `intermediate_dim` is the paper's d_ff.
    Differs from the paper: nothing.
    Cost: `2 D F + F + D` parameters, O(B T D F) time.

    Args:
        intermediate_dim: int. Width F of the hidden layer.
        activation: Keras activation of the hidden layer. Defaults to `"relu"`.
        kernel_initializer, bias_initializer: Keras initializers of both
            matrices and both biases.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`.

    Returns:
        Float tensor `(B, T, D)`.

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> layer = keras_deepnmt.layers.FeedForward(intermediate_dim=11)
    >>> layer(np.zeros((3, 5, 7), "float32")).shape
    TensorShape([3, 5, 7])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.3.
    """

    def __init__(
        self,
        intermediate_dim,
        activation="relu",
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        check_integer("intermediate_dim", intermediate_dim)
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.intermediate = self._make_dense(
            "intermediate", self.intermediate_dim, self.activation
        )
        self.intermediate.build(inputs_shape)
        self.output_dense = self._make_dense("output", width, None)
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))

    def call(self, inputs):
        return apply_to_rows(self._network, inputs)

    def _network(self, rows):
        return self.output_dense(self.intermediate(rows))  # Eq. 2

    def _make_dense(self, name, width, activation):
        return make_dense(
            self,
            width,
            name,
            clone_initializer(self.kernel_initializer),
            activation=activation,
            bias_initializer=clone_initializer(self.bias_initializer),
        )

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
        }
