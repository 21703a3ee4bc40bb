"""Rotary position embedding, RoPE (Su et al., 2021, Eq. 34)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_positive
from keras_deepnmt.layers.relative_position import RelativePosition


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RotaryPositionEmbedding(RelativePosition):
    """Turns queries and keys by angles that grow with their positions.

    The product of a query and a key then depends on their distance and not on
    where they stand. Pass it to a model as `position_encoding=`, or to an
    attention layer as `relative_position=`.

    The channels of a head are H / 2 pairs, each a point of the plane, which is
    turned about the origin. For position t it computes (Su et al., 2021,
    Eq. 34, with the angles of Eq. 15):

        a_i = t / r^(2 i / H),  i = 0 ... H / 2 - 1
        output[i]         = x[i] cos(a_i) - x[i + H / 2] sin(a_i)
        output[i + H / 2] = x[i + H / 2] cos(a_i) + x[i] sin(a_i)

    `max_wavelength` is the paper's 10000, r, H its d.
    Differs from the paper: the two channels of a pair are H / 2 apart, and not
    neighbors, which only permutes the channels of a head.
    Cost: no parameters, O(B T D) time.

    Args:
        max_wavelength: float. Longest wavelength divided by 2 pi, in positions.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        queries: float tensor `(B, N, T, H)`, with an even H.
        keys: float tensor `(B, N, S, H)`.
        values: float tensor `(B, N, S, H)`.

    Returns:
        Float tensor `(B, N, T, H)`: attention to all values. Attention layers
        call the methods `rotate`, `add_to_logits` and `add_to_context`.

    Raises:
        ValueError: if the width H of a head is odd (at build).

    Masking: none; attention layers apply the masks.

    Example:
    >>> layer = keras_deepnmt.layers.RotaryPositionEmbedding()
    >>> queries = np.ones((1, 2, 3, 4), "float32")
    >>> layer(queries, queries, queries).shape
    TensorShape([1, 2, 3, 4])

    Reference:
        - [Su et al., 2021](https://arxiv.org/abs/2104.09864), Section 3.4.
    """

    slots = ("position_encoding",)

    rotates = True

    def __init__(self, max_wavelength=10_000.0, **kwargs):
        check_positive("max_wavelength", max_wavelength)
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength

    def build(self, queries_shape, keys_shape=None, values_shape=None):
        head_dim = queries_shape[-1]
        if head_dim % 2:
            raise ValueError(
                "RotaryPositionEmbedding turns pairs of channels: the width of "
                "a head must be even. Received: a width of "
                f"{head_dim}. Change `num_heads` or the width of the model."
            )

    def rotate(self, vectors, positions):
        half = vectors.shape[-1] // 2
        exponents = ops.arange(half, dtype="float32") / half
        frequencies = self.max_wavelength**-exponents  # (H/2,), Eq. 15
        positions = ops.expand_dims(ops.cast(positions, "float32"), 1)
        angles = positions * frequencies  # (T, H/2)
        cosines = ops.cast(ops.cos(angles), vectors.dtype)
        sines = ops.cast(ops.sin(angles), vectors.dtype)
        first, second = vectors[..., :half], vectors[..., half:]
        return ops.concatenate(
            [
                first * cosines - second * sines,
                second * cosines + first * sines,
            ],
            axis=-1,
        )  # Eq. 34

    def get_config(self):
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
        }
