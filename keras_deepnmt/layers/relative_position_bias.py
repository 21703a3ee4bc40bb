"""Bias of relative positions in buckets, of T5 (Raffel et al., 2020)."""

import math

import keras
import numpy as np
from keras import ops

from keras_deepnmt.layers.argument_checks import check_integer
from keras_deepnmt.layers.relative_position import RelativePosition


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RelativePositionBias(RelativePosition):
    """Adds a learned number for each bucket of distances to the logits.

    Short distances have a bucket each, longer ones share buckets that widen
    with the logarithm of the distance, and those from `max_distance` on share
    the last. Each head has its own numbers. Pass it to a model as
    `position_encoding=`, or to an attention layer as `relative_position=`.

    For query t and key s, head n computes (Raffel et al., 2020, Section 2.1):

        logits[t, s] = q_t k_s / sqrt(H) + b[bucket(s - t), n]

    With R buckets for a direction, of which E = R / 2 are of one distance each,
    a distance x has the bucket (as in the released code)

        x                                              for x < E
        min(R - 1, E + (R - E) log(x / E) / log(M / E))  otherwise, rounded down

    `bidirectional` divides `num_buckets` among the keys before and after the
    query; otherwise all are for keys before it. M is `max_distance`. With
    `shared`, as in the paper, all self-attentions of a model's encoder add the
    same numbers, and all of its decoder others: they have a single layer, whose
    gradient is the sum of theirs. To share one without a model, build it, and
    give it to several attention layers, which clone only a layer without
    weights. Keras' `save` does not keep this: a model of your own that shares
    one cannot be loaded from a `.keras` file. Use `save_weights`, and
    `load_weights` into a model made by the same code. The models of this
    package, with `shared`, save and load as usual.
    Differs from the paper: the logits are divided by sqrt(H); without `shared`,
    each attention layer has its own numbers.
    Cost: `num_buckets N` parameters for each attention layer, or with `shared`
    for each stack; O(N T S) time.

    Args:
        num_buckets: int. Number of buckets, an even number of at least 4.
            Defaults to `32`.
        max_distance: int. Distance from which on all share a bucket. It must
            be above half of `num_buckets`. Defaults to `128`.
        bidirectional: bool. Whether keys after the query have buckets of their
            own. A model sets it to `False` in its decoder.
        shared: bool. Whether the attention layers of a stack of a model share
            the numbers. They must then have the same number of heads.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        queries: float tensor `(B, N, T, H)`.
        keys: float tensor `(B, N, S, H)`.
        values: float tensor `(B, N, S, H)`.

    Returns:
        Float tensor `(B, N, T, H)`: attention to all values. Attention layers
        call the methods `rotate`, `add_to_logits` and `add_to_context`.

    Raises:
        ValueError: if `num_buckets` is odd or below 4, or `max_distance` is too
            short for them; if an attention layer that shares the numbers of
            others has another number of heads.

    Masking: none; attention layers apply the masks.

    Example:
    >>> layer = keras_deepnmt.layers.RelativePositionBias()
    >>> queries = np.ones((1, 2, 3, 4), "float32")
    >>> layer(queries, queries, queries).shape
    TensorShape([1, 2, 3, 4])
    >>> attentions = [
    ...     keras_deepnmt.layers.MultiHeadAttention(2, relative_position=layer)
    ...     for _ in range(6)
    ... ]

    Reference:
        - [Raffel et al., 2020](https://arxiv.org/abs/1910.10683), Section 2.1.
    """

    slots = ("position_encoding",)

    def __init__(
        self,
        num_buckets=32,
        max_distance=128,
        bidirectional=True,
        shared=False,
        **kwargs,
    ):
        check_integer("num_buckets", num_buckets, minimum=4)
        check_integer("max_distance", max_distance)
        if num_buckets % 2:
            raise ValueError(
                "`num_buckets` must be even. "
                f"Received: num_buckets={num_buckets}."
            )
        if max_distance <= num_buckets // 2:
            raise ValueError(
                "`max_distance` must be above half of `num_buckets`. Received: "
                f"max_distance={max_distance}, num_buckets={num_buckets}."
            )
        super().__init__(**kwargs)
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.shared = shared

    def build(self, queries_shape, keys_shape=None, values_shape=None):
        self.table = self.add_weight(
            name="table",
            shape=(self.num_buckets, queries_shape[1]),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def check_shared(self, user, queries_shape):
        if self.table.shape[1] != queries_shape[1]:
            raise ValueError(
                "`num_heads` must be the same in all attention layers that "
                f"share the numbers of {self.name}: {self.table.shape[1]}. "
                f"Received: {user} with num_heads={queries_shape[1]}. Change "
                "it, or leave out `shared`, so that each has its own numbers."
            )

    def add_to_logits(self, logits, queries, distances):
        last = self.max_distance
        buckets = [self.bucket(x) for x in range(-last, last + 1)]
        rows = np.array(buckets, "int32")
        # The numbers of every distance, then those of each query and key.
        table = ops.take(ops.cast(self.table, "float32"), rows, axis=0)
        rows = ops.clip(distances, -last, last) + last
        bias = ops.take(table, rows, axis=0)  # (T, S, N)
        return logits + ops.transpose(bias, (2, 0, 1))

    def bucket(self, distance):
        """Returns the bucket of a distance.

        Args:
            distance: int. How many positions a key comes after a query.

        Returns:
            int in [0, `num_buckets`).
        """
        first, number = 0, self.num_buckets
        if self.bidirectional:
            number //= 2
            first = number if distance > 0 else 0
            distance = abs(distance)
        else:
            distance = max(-distance, 0)
        exact = number // 2
        if distance < exact:
            return first + distance
        share = math.log(distance / exact) / math.log(self.max_distance / exact)
        # Exact shares such as 1 / 3 must not be rounded below themselves.
        coarse = exact + math.floor(share * (number - exact) + 1e-9)
        return first + min(coarse, number - 1)

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "shared": self.shared,
        }
