"""Random skipping of whole blocks in training (Fan et al., 2020)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_probability,
    check_sequence,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LayerDrop(keras.layers.Layer):
    """Skips a block in training, with a fixed probability.

    A deep stack is regularized, and learns to do without any single block. In
    a model each block has one of these layers: it gets the block's input and
    output, and hands one of them on. In inference every block counts.

    It computes (Fan et al., 2020, Section 3.2), for a whole batch at once:

        output = inputs    with probability p, in training
        output = outputs   otherwise

    Here `rate` is the paper's p. Unlike after dropout, nothing is divided by
    `1 - p`.
    Differs from the paper: XLA compiles one program for all batches, so that a
    skipped block is computed, too, and the time of an update does not fall; its
    weights get zeros as gradients. Choosing blocks after training, to make a
    smaller model, is not part of the layer.
    Cost: no parameters; O(B T D) time.

    Args:
        rate: float in [0, 1). Probability p of skipping a block. Defaults to
            `0.2`, as in the paper.
        seed: int. Seed of the layer's generator. Defaults to a random one. A
            model derives one for each block, so that they are skipped
            independently.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, the block's input.
        outputs: float tensor `(B, T, D)`, the block's output.
        training: bool. Whether a block may be skipped.

    Returns:
        Float tensor `(B, T, D)`.

    Raises:
        ValueError: if `rate` is outside [0, 1), or the tensors differ in shape.

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> layer = keras_deepnmt.layers.LayerDrop(0.5)
    >>> inputs, outputs = np.zeros((3, 5, 7)), np.ones((3, 5, 7))
    >>> float(np.mean(layer(inputs, outputs)))
    1.0

    Reference:
        - [Fan et al., 2020](https://arxiv.org/abs/1909.11556), Section 3.2.
    """

    slots = ("layer_drop",)

    def __init__(self, rate=0.2, seed=None, **kwargs):
        check_probability("rate", rate)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate = rate
        self.seed = seed
        # Without a rate nothing is drawn, and no state is saved.
        if rate > 0.0:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, inputs_shape, outputs_shape=None):
        check_sequence("inputs", inputs_shape)

    def call(self, inputs, outputs, training=None):
        check_alike("outputs", [outputs], "inputs", inputs, num_axes=3)
        if not training or self.rate == 0.0:
            return outputs
        drawn = keras.random.uniform((), seed=self.seed_generator)
        return ops.where(drawn < self.rate, inputs, outputs)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
