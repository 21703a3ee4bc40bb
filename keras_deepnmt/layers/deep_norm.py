"""Residual connection for very deep post-norm stacks (Wang et al., 2022)."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
)
from keras_deepnmt.layers.residual_connection import ResidualConnection


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class DeepNorm(ResidualConnection):
    """Adds a sub-layer's output to a multiple of its input, and normalizes.

    In a deep post-norm stack the first updates change the output so much that
    training diverges. A larger weight of the residual branch and smaller
    initial weights bound this change, whatever the depth.

    Given the sub-layer G and its input x it computes (Wang et al., 2022,
    Section 4.1):

        output = LN(alpha x + dropout(G(x)))

    and starts the kernels of G with Glorot's normal distribution times a gain:
    1 for the query and key projections, beta for value and output projections
    and for the feed-forward network. With N encoder and M decoder layers
    (Figure 2):

        encoder: alpha = 0.81 (N^4 M)^(1/16), beta = 0.87 (N^4 M)^(-1/16)
        decoder: alpha = (3 M)^(1/4),         beta = (12 M)^(-1/4)

    Differs from the paper: nothing. Kernels of other layers in a slot, such as
    those of gates, have the gain beta.
    Cost: `2 D` parameters.

    Args:
        stack: `"encoder"` or `"decoder"`: where the sub-layer is. A model sets
            it. Defaults to `"encoder"`.
        num_encoder_layers: int. Number N of encoder layers; `None` takes the
            model's.
        num_decoder_layers: int. Number M of decoder layers; `None` takes the
            model's.
        dropout, layer_norm_epsilon, **kwargs: as in `ResidualConnection`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, the sub-layer's input.
        outputs: float tensor `(B, T, D)`, the sub-layer's output.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`.

    Raises:
        ValueError: for an unknown stack, and for a number of layers that is
            below 1 or, at build, missing.

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> residual = keras_deepnmt.layers.DeepNorm("decoder", 18, 6)
    >>> residual(np.ones((3, 5, 7)), np.ones((3, 5, 7))).shape
    TensorShape([3, 5, 7])
    >>> round(residual.alpha, 3), round(residual.beta, 3)
    (2.06, 0.343)

    Reference:
        - [Wang et al., 2022](https://arxiv.org/abs/2203.00555).
    """

    slots = ("residual_connection",)

    def __init__(
        self,
        stack="encoder",
        num_encoder_layers=None,
        num_decoder_layers=None,
        dropout=0.1,
        layer_norm_epsilon=1e-6,
        **kwargs,
    ):
        check_choice("stack", stack, ("encoder", "decoder"))
        layers = {
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
        }
        for name, value in layers.items():
            if value is not None:
                check_integer(name, value)
        super().__init__(dropout, layer_norm_epsilon, **kwargs)
        self.stack = stack
        self.num_encoder_layers = num_encoder_layers
        self.num_decoder_layers = num_decoder_layers

    def build(self, inputs_shape, outputs_shape=None):
        self._depths()
        super().build(inputs_shape, outputs_shape)

    def _depths(self):
        depths = self.num_encoder_layers, self.num_decoder_layers
        if None in depths:
            raise ValueError(
                "`num_encoder_layers` and `num_decoder_layers` must be given "
                "outside a model. Received: "
                f"num_encoder_layers={depths[0]}, "
                f"num_decoder_layers={depths[1]}. Use, for instance, "
                "num_encoder_layers=18, num_decoder_layers=6."
            )
        return depths

    @property
    def alpha(self):
        """The factor of the sub-layer's input."""
        encoder, decoder = self._depths()
        if self.stack == "decoder":
            return (3 * decoder) ** (1 / 4)
        return 0.81 * (encoder**4 * decoder) ** (1 / 16)

    @property
    def beta(self):
        """The gain of the sub-layer's initial kernels."""
        encoder, decoder = self._depths()
        if self.stack == "decoder":
            return (12 * decoder) ** (-1 / 4)
        return 0.87 * (encoder**4 * decoder) ** (-1 / 16)

    def call(self, inputs, outputs, training=None):
        return super().call(self.alpha * inputs, outputs, training=training)

    def initializer_of(self, path):
        """Returns the initializer of a kernel of the sub-layer.

        Args:
            path: str. The path of the kernel.
        """
        is_compared = path.split("/")[-2] in ("query", "key")
        return keras.initializers.VarianceScaling(
            1.0 if is_compared else self.beta**2,
            mode="fan_avg",
            distribution="untruncated_normal",
        )

    def get_config(self):
        config = super().get_config()
        # Not an argument: the norm always follows.
        config.pop("normalize_first")
        return {
            **config,
            "stack": self.stack,
            "num_encoder_layers": self.num_encoder_layers,
            "num_decoder_layers": self.num_decoder_layers,
        }
