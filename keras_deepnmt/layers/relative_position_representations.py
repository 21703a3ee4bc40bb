"""Relative position representations (Shaw et al., 2018, Eq. 3-4)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_integer
from keras_deepnmt.layers.relative_position import RelativePosition


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RelativePositionRepresentations(RelativePosition):
    """Adds a learned vector for each distance to keys and to values.

    Distances beyond `max_distance` share the vector of the farthest. Pass it
    to a model as `position_encoding=`, or to an attention layer as
    `relative_position=`.

    With tables A^K and A^V of vectors for the distances -k ... k it computes
    (Shaw et al., 2018, Eq. 3-5):

        logits[t, s] = q_t (k_s + A^K[clip(s - t)]) / sqrt(H)
        output[t] = sum_s softmax(logits)[t, s] (v_s + A^V[clip(s - t)])
        clip(x) = max(-k, min(k, x))

    `max_distance` is the paper's k; the heads of a layer share the tables, and
    each attention layer has its own.
    Differs from the paper: nothing.
    Cost: `2 (2 k + 1) H` parameters, O(B T S D) time.

    Args:
        max_distance: int. The longest distance with a vector of its own.
            Defaults to `16`, that of the paper's base model.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        queries: float tensor `(B, N, T, H)`.
        keys: float tensor `(B, N, S, H)`.
        values: float tensor `(B, N, S, H)`.

    Returns:
        Float tensor `(B, N, T, H)`: attention to all values. Attention layers
        call the methods `rotate`, `add_to_logits` and `add_to_context`.

    Raises:
        ValueError: if `max_distance` is below 1.

    Masking: none; attention layers apply the masks.

    Example:
    >>> layer = keras_deepnmt.layers.RelativePositionRepresentations(5)
    >>> queries = np.ones((1, 2, 3, 4), "float32")
    >>> layer(queries, queries, queries).shape
    TensorShape([1, 2, 3, 4])

    Reference:
        - [Shaw et al., 2018](https://arxiv.org/abs/1803.02155), Section 3.
    """

    slots = ("position_encoding",)

    def __init__(self, max_distance=16, **kwargs):
        check_integer("max_distance", max_distance)
        super().__init__(**kwargs)
        self.max_distance = max_distance

    def build(self, queries_shape, keys_shape=None, values_shape=None):
        for name in ("key", "value"):
            table = self.add_weight(
                name=f"{name}_table",
                shape=(2 * self.max_distance + 1, queries_shape[-1]),
                initializer="glorot_uniform",
            )
            setattr(self, f"{name}_table", table)

    def add_to_logits(self, logits, queries, distances):
        vectors = self._look_up(self.key_table, distances)
        scaled = queries * queries.shape[-1] ** -0.5
        if distances.shape[0] == 1:  # one position, perhaps of many queries
            added = ops.einsum("bnth,sh->bnts", scaled, vectors[0])
        else:
            added = ops.einsum("bnth,tsh->bnts", scaled, vectors)
        return logits + ops.cast(added, "float32")  # Eq. 4

    def add_to_context(self, context, weights, distances):
        vectors = self._look_up(self.value_table, distances)
        if distances.shape[0] == 1:
            return context + ops.einsum("bnts,sh->btnh", weights, vectors[0])
        return context + ops.einsum("bnts,tsh->btnh", weights, vectors)  # Eq. 3

    def _look_up(self, table, distances):
        k = self.max_distance
        rows = ops.clip(distances, -k, k) + k  # Eq. 5
        table = ops.cast(table, self.compute_dtype)
        return ops.take(table, rows, axis=0)  # (T, S, H)

    def get_config(self):
        return {**super().get_config(), "max_distance": self.max_distance}
