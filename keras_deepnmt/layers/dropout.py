"""Dropout whose mask is a hash, cheap enough for every sub-layer."""

import keras
from keras import ops


def mix_bits(x):
    """Scrambles int32 numbers: one changed bit changes half of the others.

    The integer hash `lowbias32` of Wellons (2018), with wrapping products.

    Args:
        x: int32 tensor.

    Returns:
        Int32 tensor of the same shape.

    Example:
    >>> int(mix_bits(np.int32(0)))
    0
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
    """Drops activations by a hash of their position and a fresh seed.

    The random numbers of Keras' own dropout cost more on a CPU than the matrix
    products of a narrow Transformer. Here number i of a tensor is kept iff

        hash(hash(i + seed_0) xor seed_1) >= rate * 2^32

    with the integer hash of `mix_bits` and a fresh `(seed_0, seed_1)` per call
    from the layer's seed generator; XLA makes it part of the neighbouring
    loop, forward and backward, and never stores it.
    Differs from the paper: nothing in distribution (Srivastava et al., 2014).
    Cost: no parameters; some 12 integer operations an activation.

    Args:
        rate: float in [0, 1). Probability of dropping an activation.
        seed: int. Seed of the layer's generator. Defaults to a random one.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor of any shape, or a list of tensors of one shape,
            of which the same places are dropped.
        training: bool. Whether activations are dropped.

    Returns:
        As `inputs`; what is kept is divided by `1 - rate`.

    Raises:
        ValueError: if `rate` is outside [0, 1].

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
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs, training=False):
        if not training or self.rate == 0.0:
            return inputs
        together = isinstance(inputs, list | tuple)
        tensors = list(inputs) if together else [inputs]
        kept = self._kept(ops.shape(tensors[0]), self.draw_key())
        outputs = [self._drop(tensor, kept) for tensor in tensors]
        return outputs if together else outputs[0]

    def draw_key(self):
        """Draws what decides which activations one call drops.

        Returns:
            Int32 tensor `(2,)`, or `None` if none is dropped.
        """
        if self.rate == 0.0:
            return None
        return ops.cast(self.seed_generator.next(), "int32")

    def drop(self, tensor, key):
        """Drops by a key, the same places each time.

        For what is computed again in the backward pass.

        Args:
            tensor: float tensor of any shape.
            key: int32 tensor from `draw_key`, or `None` to drop none.

        Returns:
            As `tensor`; what is kept is divided by `1 - rate`.
        """
        if key is None:
            return tensor
        return self._drop(tensor, self._kept(ops.shape(tensor), key))

    def _kept(self, shape, key):
        # Begun with the key, which is unknown when XLA compiles: it would
        # store a constant as large as the tensor.
        index, size = key[0], 1
        for axis in reversed(range(len(shape))):
            places = ops.arange(shape[axis], dtype="int32") * size
            ones = (1,) * (len(shape) - axis - 1)
            index = index + ops.reshape(places, (-1, *ones))
            size = size * shape[axis]
        bits = mix_bits(ops.bitwise_xor(mix_bits(index), key[1]))
        # The hash is uniform over [-2^31, 2^31).
        threshold = min(int(self.rate * 2**32) - 2**31, 2**31 - 1)
        return ops.greater_equal(bits, threshold)

    def _drop(self, tensor, kept):
        scaled = tensor * (1.0 / (1.0 - self.rate))
        return ops.where(kept, scaled, ops.zeros_like(tensor))

    def get_config(self):
        config = super().get_config()
        # Keras' option to share a mask along axes is not this layer's.
        config.pop("noise_shape", None)
        return config
