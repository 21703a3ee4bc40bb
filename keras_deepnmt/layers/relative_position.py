"""What an attention layer asks of a layer of relative positions."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import has_unknown_rank
from keras_deepnmt.masks import relative_positions


class RelativePosition(keras.layers.Layer):
    """Base class of layers that tell an attention the order of its tokens.

    Instead of adding positions to the embeddings, an attention layer, which
    holds the layer as `relative_position`, asks it at three places:

        queries and keys = rotate(queries and keys)
        logits = add_to_logits(queries keys^T / sqrt(H))
        context = add_to_context(softmax(logits) values)

    A subclass overrides the methods that it needs. Only distances between
    tokens, or differences of rotations, may have an effect: a search keeps
    rotated keys in its cache, where they are read at every later step.
    """

    # Tells a model that the attention layers apply it, not the embeddings.
    is_relative = True

    # Whether `rotate` does anything.
    rotates = False

    def build(self, queries_shape, keys_shape=None, values_shape=None):
        """Makes the weights, if there are any."""

    def call(self, queries, keys, values):
        _check_axes("keys", keys, "queries", queries, (0, 1, 3))
        _check_axes("values", values, "keys", keys, (0, 1, 2))
        num_queries, num_keys = ops.shape(queries)[2], ops.shape(keys)[2]
        distances = relative_positions(num_queries, num_keys)
        scaled = self.rotate(queries, ops.arange(num_queries, dtype="int32"))
        rotated = self.rotate(keys, ops.arange(num_keys, dtype="int32"))
        scaled = scaled * queries.shape[-1] ** -0.5
        logits = ops.einsum("bnth,bnsh->bnts", scaled, rotated)
        logits = ops.cast(logits, "float32")
        logits = self.add_to_logits(logits, queries, distances)
        weights = ops.cast(ops.softmax(logits, axis=-1), self.compute_dtype)
        context = ops.einsum("bnts,bnsh->btnh", weights, values)
        context = self.add_to_context(context, weights, distances)
        return ops.transpose(context, (0, 2, 1, 3))  # (B, N, T, H)

    def check_shared(self, user, queries_shape):
        """Refuses an attention whose heads are not those of the weights.

        Args:
            user: str. The name of the attention that is given the layer.
            queries_shape: the shape of its queries, `(B, N, T, H)`.

        Raises:
            ValueError: if the layer was built for another number of heads.
        """

    def rotate(self, vectors, positions):
        """Turns queries or keys by their positions.

        Args:
            vectors: float tensor `(B, N, T, H)`.
            positions: int tensor `(T,)`, or `(1,)` if all have one position.

        Returns:
            Float tensor like `vectors`.
        """
        return vectors

    def add_to_logits(self, logits, queries, distances):
        """Adds what depends on the distance of a key from a query.

        Args:
            logits: float32 tensor `(B, N, T, S)`.
            queries: float tensor `(B, N, T, H)`, as they were projected.
            distances: int tensor `(T, S)`: how many positions a key comes after
                a query; `(1, S)` if all queries have one position.

        Returns:
            Float32 tensor like `logits`.
        """
        return logits

    def add_to_context(self, context, weights, distances):
        """Adds what depends on the distance of a value from a query.

        Args:
            context: float tensor `(B, T, N, H)`.
            weights: float tensor `(B, N, T, S)`: the attention weights.
            distances: int tensor as in `add_to_logits`.

        Returns:
            Float tensor like `context`.
        """
        return context

    def get_config(self):
        # Keras' own, which a layer without arguments would otherwise lack.
        return {**super().get_config()}

    def compute_output_shape(self, queries_shape, keys_shape, values_shape):
        return (*queries_shape[:-1], values_shape[-1])


def _check_axes(name, tensor, other_name, other, axes):
    """Refuses sizes that would be broadcast without a word."""
    if has_unknown_rank(tensor) or has_unknown_rank(other):
        return
    sizes = [(tensor.shape[axis], other.shape[axis]) for axis in axes]
    if any(None not in pair and pair[0] != pair[1] for pair in sizes):
        names = [("batch", "heads", "length", "width")[axis] for axis in axes]
        raise ValueError(
            f"`{name}` must have the {', '.join(names[:-1])} and {names[-1]} "
            f"of `{other_name}`, of shape {tuple(other.shape)}. Received: "
            f"{name} of shape {tuple(tensor.shape)}."
        )
