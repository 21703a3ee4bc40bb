"""The bias of a projection to logits whose matrix is an embedding's."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class OutputBias(keras.layers.Layer):
    """Adds a learned number to the logit of each token.

        y_v = x_v + b_v

    It has V weights, which begin at zero. With `ids` `(W,)` the logits are
    those of these tokens alone.
    """

    def build(self, logits_shape):
        self.bias = self.add_weight(
            name="bias", shape=(logits_shape[-1],), initializer="zeros"
        )

    def call(self, logits, ids=None):
        bias = self.bias if ids is None else ops.take(self.bias, ids)
        return logits + ops.cast(bias, logits.dtype)

    def compute_output_shape(self, logits_shape):
        return tuple(logits_shape)
