"""Dropout with a hash function as a cheap random number generator."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_probability


def mix_bits(x):
    """Hashes int32 numbers: one changed input bit changes half of the result.

    The integer hash `lowbias32` of Wellons (2018), with products that wrap
    around.
    """
    x = ops.bitwise_xor(x, _shift_right(x, 16)) * 0x7FEB352D
    # 0x846CA68B as a signed number.
    x = ops.bitwise_xor(x, _shift_right(x, 15)) * (0x846CA68B - 2**32)
    return ops.bitwise_xor(x, _shift_right(x, 16))


def _shift_right(x, bits):
    # Without the mask the sign would be copied into the freed bits.
    return ops.bitwise_and(ops.right_shift(x, bits), (1 << (32 - bits)) - 1)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Dropout(keras.layers.Dropout):
    """Drops activations at random, faster on a CPU than `keras.layers.Dropout`.

    Generating the random numbers of Keras' dropout takes longer on a CPU than
    the matrix products of a narrow Transformer. Here element i of a tensor is
    kept if and only if

        hash(hash(i + seed_0) xor seed_1) >= rate * 2^32

    with the integer hash of `mix_bits` and a new `(seed_0, seed_1)` per call
    from the layer's seed generator. XLA fuses this into the neighboring loop,
    forward and backward, and never stores the mask.
    Differs from the paper: nothing in distribution (Srivastava et al., 2014).
    Cost: no parameters; about 12 integer operations per activation.

    Args:
        rate: float in [0, 1). Probability of dropping an activation.
        seed: int. Seed of the layer's generator. Defaults to a random one.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor of any shape, or a list of tensors of the same
            shape, in which the same positions are dropped.
        training: bool. Whether activations are dropped.

    Returns:
        As `inputs`; activations that are kept are divided by `1 - rate`.

    Raises:
        ValueError: if `rate` is outside [0, 1), and for a `noise_shape`.

    Masking: passes the inputs' mask through.

    Example:
    >>> layer = keras_deepnmt.layers.Dropout(0.5)
    >>> sorted(set(np.ravel(layer(np.ones((7, 11)), training=True)).tolist()))
    [0.0, 2.0]

    Reference:
        - [Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html).
        - [Wellons, 2018](https://nullprogram.com/blog/2018/07/31/), lowbias32.
    """

    def __init__(self, rate, seed=None, **kwargs):
        check_probability("rate", rate)
        if kwargs.get("noise_shape") is not None:
            raise ValueError(
                "`noise_shape` must be None: each activation is dropped by "
                f"itself. Received: noise_shape={kwargs['noise_shape']!r}. Use "
                "keras.layers.Dropout."
            )
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs, training=False):
        if not training or self.rate == 0.0:
            return inputs
        is_list = isinstance(inputs, list | tuple)
        tensors = list(inputs) if is_list else [inputs]
        keep_mask = self._keep_mask(ops.shape(tensors[0]), self.draw_key())
        outputs = [self._apply_mask(tensor, keep_mask) for tensor in tensors]
        return outputs if is_list else outputs[0]

    def draw_key(self):
        """Draws the random key that decides which activations are dropped.

        Returns:
            Int32 tensor `(2,)`, or `None` if `rate` is 0.
        """
        if self.rate == 0.0:
            return None
        return ops.cast(self.seed_generator.next(), "int32")

    def drop(self, tensor, key):
        """Drops the activations that a key selects.

        The same key always drops the same positions. This is needed where an
        output is recomputed in the backward pass.

        Args:
            tensor: float tensor of any shape.
            key: int32 tensor from `draw_key`, or `None` to drop nothing.

        Returns:
            As `tensor`; activations that are kept are divided by `1 - rate`.
        """
        if key is None:
            return tensor
        return self._apply_mask(tensor, self._keep_mask(ops.shape(tensor), key))

    def _keep_mask(self, shape, key):
        # Starts from the key, whose value XLA does not know: otherwise it would
        # compute the indices when compiling and store them as a constant.
        index, size = key[0], 1
        for axis in reversed(range(len(shape))):
            offsets = ops.arange(shape[axis], dtype="int32") * size
            ones = (1,) * (len(shape) - axis - 1)
            index = index + ops.reshape(offsets, (-1, *ones))
            size = size * shape[axis]
        bits = mix_bits(ops.bitwise_xor(mix_bits(index), key[1]))
        # The hash is uniform over [-2^31, 2^31).
        threshold = min(int(self.rate * 2**32) - 2**31, 2**31 - 1)
        return ops.greater_equal(bits, threshold)

    def _apply_mask(self, tensor, keep_mask):
        scaled = tensor * (1.0 / (1.0 - self.rate))
        return ops.where(keep_mask, scaled, ops.zeros_like(tensor))

    def get_config(self):
        config = super().get_config()
        # Not an argument of this layer, which never shares a mask along axes.
        config.pop("noise_shape", None)
        return config
