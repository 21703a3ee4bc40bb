"""Initial weights that get smaller with the depth (Zhang et al., 2019)."""

import keras

from keras_deepnmt.layers.argument_checks import check_integer, check_positive


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class DepthScaledInitializer(keras.initializers.VarianceScaling):
    """Draws the kernels of a block from a range that falls with its depth.

    In a deep post-norm stack gradients vanish on the way down, since each layer
    normalization divides by the growing variance of its input. Smaller kernels
    in higher blocks keep this variance small.

    A kernel with fans `d_i` and `d_o` in block l of a stack, from 1, is drawn
    from (Zhang et al., 2019, DS-Init)

        U(-r, r),  r = alpha / sqrt(l) * sqrt(6 / (d_i + d_o))

    which is Glorot's uniform distribution times `alpha / sqrt(l)`.
    Differs from the paper: nothing. Its merged attention is another change,
    which is not here.

    Args:
        alpha: float above 0. Factor of the range; the paper's is in [0, 1].
            Defaults to `1.0`.
        block_number: int. Number l of the block, from 1; a model sets it.
        seed: int. Seed of the draw, with which all kernels of one shape start
            alike. Defaults to a random one.

    Call arguments:
        shape: tuple of ints. Shape of the kernel.
        dtype: Keras dtype. That of the kernel. Defaults to Keras' own.

    Returns:
        Float tensor of this shape.

    Raises:
        ValueError: if `alpha` is not above 0 or `block_number` is below 1.

    Example:
    >>> initializer = keras_deepnmt.layers.DepthScaledInitializer()
    >>> kernel = initializer.at_block(9)((3, 3))
    >>> bool(np.max(np.abs(kernel)) < 1 / 3)
    True

    Reference:
        - [Zhang et al., 2019](https://aclanthology.org/D19-1083).
    """

    def __init__(self, alpha=1.0, block_number=1, seed=None):
        check_positive("alpha", alpha)
        check_integer("block_number", block_number)
        super().__init__(
            alpha**2 / block_number,
            mode="fan_avg",
            distribution="uniform",
            seed=seed,
        )
        self.alpha = alpha
        self.block_number = block_number

    def at_block(self, number):
        """Returns the initializer of the kernels of a block.

        Args:
            number: int. Number of the block in its stack, from 1.
        """
        config = {**self.get_config(), "block_number": number}
        return type(self).from_config(config)

    def get_config(self):
        seed = super().get_config()["seed"]
        return {
            "alpha": self.alpha,
            "block_number": self.block_number,
            "seed": seed,
        }
