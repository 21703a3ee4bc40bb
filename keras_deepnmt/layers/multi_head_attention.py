"""Multi-head attention with decoding caches (Vaswani et al., 2017, Eq. 1)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_integer,
    check_mask,
    check_probability,
    check_sequence,
    has_unknown_rank,
)
from keras_deepnmt.layers.call_results import call_results
from keras_deepnmt.layers.cloning import (
    clone_initializer,
    clone_prototype,
    position_argument,
    prototype_name,
)
from keras_deepnmt.layers.dense_rows import apply_to_rows
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.history import (
    history_distances,
    own_slots,
    used_slots,
    write_history,
)
from keras_deepnmt.layers.initial_kernels import make_dense
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.recording import record
from keras_deepnmt.masks import merge_attention_masks, relative_positions

# Initial variance of query, key and value projections relative to Glorot's.
SMALL_VARIANCE = 0.1


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class MultiHeadAttention(keras.layers.Layer):
    """Computes multi-head attention, with caches for incremental decoding.

    One layer serves self-attention and cross-attention. In incremental
    decoding, self-attention has a cache for the keys and values of earlier
    positions, and cross-attention a static cache for those of the source,
    which are computed once per sentence and shared by all beams. The K
    hypotheses of a sentence may share a self-attention cache, of which slot
    `m K + k` belongs to position m of hypothesis k. When they change places,
    nothing is copied: `attention_mask` says which slots each of them attends
    to (`masks.ancestor_mask`).

    Given projections Q, K, V of width H per head it computes
    (Vaswani et al., 2017, Eq. 1 and Section 3.2.2):

        head_n = softmax(Q_n K_n^T / sqrt(H)) V_n
        output = [head_1; ...; head_N] W_O

    Here `num_heads` is the paper's h, `head_dim` its d_k = d_v. With fewer
    `num_key_value_heads` G, heads share keys and values in groups of N / G
    (Ainslie et al., 2023, Section 2.2; Shazeer, 2019, with G = 1): head n has
    those of number n G / N, rounded down. A cache is smaller by G / N.
    Differs from the paper: a query that may attend to no key gets zeros; the
    key projection has no bias unless `key_bias=True` (the softmax is invariant
    to it, and Adam would turn its rounding errors into updates); the query,
    key and value projections start with a tenth of the variance of Glorot's
    initializer unless another `kernel_initializer` is given.
    Cost: `(2 + 2 G / N) D^2` weights, O(B T S D) time.

    Args:
        num_heads: int. Number of heads N; must divide the query's width D.
        attention_dropout: float in [0, 1). Probability of dropping an
            attention weight. Defaults to `0.0`.
        use_bias: bool. Whether query, value and output projections have a bias.
        key_bias: bool. Whether the key projection has a bias.
        kernel_initializer: Keras initializer of the query, key and value
            projections; the output projection is Glorot uniform. `None` means
            uniform with a tenth of Glorot's variance: the initial attention is
            then almost uniform, and post-norm stacks can learn at high rates.
            One with a seed gives all three the same values.
        bias_initializer: Keras initializer of the biases.
        relative_position: unbuilt layer of relative positions, such as
            `RotaryPositionEmbedding`, which is cloned; or one that has weights,
            which all attentions that are given it share (how to save a model
            of your own with one: see `RelativePositionBias`); or `None`.
            Queries and
            keys are then of the same tokens: it is for self-attention only.
        num_key_value_heads: int. Number of heads G of keys and values; must
            divide `num_heads`. `None` means one for each head of the queries.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        value: float tensor `(B, S, D)`. Defaults to `query`.
        key: float tensor `(B, S, D)`. Defaults to `value`.
        attention_mask: bool tensor that broadcasts to `(B, T, S)`, `True` =
            may attend, such as one `(T, S)` for all sentences. `None` allows
            all positions. With `cache_index`:
            `(B, K, M*K)`, and `None` allows each hypothesis its own slots.
        use_causal_mask: bool. Whether position t attends only to s <= t.
        cache: dict `{"key", "value"}`. With `cache_index`: tensors from
            `init_cache`, into which this step is written. Without
            `cache_index`: tensors from `static_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        return_attention_scores: bool. Whether to return the weights as well.
        training: bool. Whether dropout is active.
        mask, query_mask, value_mask, key_mask: bool tensors `(B, T)` and
            `(B, S)`, `True` = real token, which Keras attaches to the tensors
            and passes itself.

    Returns:
        `output`, a float tensor like `query`; then `cache` if one was passed;
        then the attention weights `(B, N, T, S)` if requested.

    Raises:
        ValueError: if `attention_dropout` is outside [0, 1); at build, if
            `num_heads` does not divide `D`; at call, if value, key or mask do
            not have the shape above, and with `relative_position` for a value
            of another length than the query or a static cache.

    Masking: no query attends to a key that `attention_mask` or a mask attached
    to `value` or `key` (in self-attention, to `query`) excludes. The mask of
    `query` is attached to the output.

    Example:
    >>> attention = keras_deepnmt.layers.MultiHeadAttention(num_heads=2)
    >>> attention(np.zeros((3, 5, 8), "float32")).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.2.
        - [Shazeer, 2019](https://arxiv.org/abs/1911.02150), Section 3.
        - [Ainslie et al., 2023](https://arxiv.org/abs/2305.13245), Section 2.2.
    """

    # Slots of a model that the layer fits: a recipe may name it there.
    slots = (
        "encoder_self_attention",
        "decoder_self_attention",
        "decoder_cross_attention",
    )

    # Its cache can be shared by the hypotheses of a sentence.
    keeps_history = True

    # Its argument for the initializer that a model gives all its attentions.
    initializer_argument = "kernel_initializer"

    def __init__(
        self,
        num_heads,
        attention_dropout=0.0,
        use_bias=True,
        key_bias=False,
        kernel_initializer=None,
        bias_initializer="zeros",
        relative_position=None,
        num_key_value_heads=None,
        **kwargs,
    ):
        check_integer("num_heads", num_heads)
        if num_key_value_heads is not None:
            check_integer("num_key_value_heads", num_key_value_heads)
            if num_heads % num_key_value_heads:
                raise ValueError(
                    "`num_key_value_heads` must divide `num_heads`. Received: "
                    f"num_key_value_heads={num_key_value_heads}, "
                    f"num_heads={num_heads}."
                )
        check_probability("attention_dropout", attention_dropout)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.attention_dropout = attention_dropout
        self.use_bias = use_bias
        self.key_bias = key_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.relative_position, self.given_position = position_argument(
            relative_position
        )
        self.position = None
        self.num_key_value_heads = num_key_value_heads
        self.num_shared_heads = num_key_value_heads or num_heads  # G

    def build(self, query_shape, value_shape=None, key_shape=None):
        check_sequence("query", query_shape)
        width = query_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the width of `query`. Received: "
                f"num_heads={self.num_heads}, query_shape={query_shape}."
            )
        self.head_dim = width // self.num_heads
        value_shape = value_shape or query_shape
        shapes = {
            "query": query_shape,
            "key": key_shape or value_shape,
            "value": value_shape,
            "output": query_shape,
        }
        for name, shape in shapes.items():
            use_bias = self.key_bias if name == "key" else self.use_bias
            projection = self._make_projection(
                name,
                self._key_width if name in ("key", "value") else width,
                use_bias,
                self._make_initializer(name),
            )
            projection.build(shape)
            setattr(self, f"{name}_projection", projection)
        self.dropout_layer = Dropout(
            self.attention_dropout,
            name="attention_dropout",
            dtype=self.dtype_policy,
        )
        if self.relative_position is not None:
            self.position = self._make_position()

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        return_attention_scores=False,
        training=None,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        self._check_inputs(query, value, key, attention_mask, cache)
        attention_mask = _of_all_sentences(attention_mask)
        if cache is None:
            attention_mask = merge_attention_masks(
                attention_mask,
                _mask_of_keys(
                    first_mask(mask, query_mask) if value is None else None,
                    value_mask,
                    key_mask,
                ),
            )
        value = query if value is None else value
        key = value if key is None else key
        query_shape = ops.shape(query)
        if cache is not None:
            query = _beams_as_queries(query, cache["key"])  # (B, K, D)
        queries = self._project(self.query_projection, query)
        if cache is None:
            keys = self._project(self.key_projection, key)  # (B, N, S, H)
            values = self._project(self.value_projection, value)
            distances = relative_positions(query_shape[1], ops.shape(keys)[2])
            allowed = self._make_mask(
                attention_mask, use_causal_mask, distances
            )
            logits = self._compute_logits(queries, keys, distances)
            context, scores = self._attend(
                logits, values, allowed, training, distances
            )
        elif cache_index is None:
            self._refuse_positions()
            allowed = self._make_mask(attention_mask, False, None)
            logits = self._compute_cached_logits(queries, cache["key"])
            context, scores = self._attend(
                logits, cache["value"], allowed, training
            )
        else:
            cache = self._write_cache(cache, key, value, cache_index)
            context, scores = self._attend_to_history(
                queries,
                cache,
                attention_mask,
                cache_index,
                return_attention_scores,
                training,
            )
        output = apply_to_rows(self.output_projection, context)
        output = ops.reshape(output, query_shape)
        return call_results(
            output, cache, scores if return_attention_scores else None
        )

    def _check_inputs(self, query, value, key, attention_mask, cache):
        """Refuses shapes that would be broadcast without a word."""
        if cache is None:
            value = query if value is None else value
            num_axes = 1 if self.position is None else 2
            check_alike("value", [value], "query", query, num_axes)
            check_alike("key", [key], "value", value)
            shape = (*query.shape[:2], value.shape[1])
        else:  # (B, K, S) or (B, K, M*K)
            rows, _, num_keys = cache["key"].shape
            shape = (rows, None, num_keys)
        check_mask("attention_mask", attention_mask, shape, broadcasts=True)

    def _refuse_positions(self):
        if self.position is not None:
            raise ValueError(
                "`cache` needs a `cache_index`: "
                f"{prototype_name(self.relative_position)} compares the "
                "positions of queries and keys. Received: cache_index=None. "
                "Use an attention without `relative_position` for "
                "cross-attention."
            )

    def check_slot(self, slot):
        """Refuses relative positions where queries and keys are of two texts.

        Args:
            slot: str. The name of a slot of a model.

        Raises:
            ValueError: for `relative_position` in a slot of cross-attention.
        """
        if slot == "decoder_cross_attention" and self.relative_position:
            raise ValueError(
                f"`{slot}` must have no `relative_position`: queries and keys "
                "are of two texts. Received: "
                f"{prototype_name(self.relative_position)}."
            )

    def init_cache(self, batch_size, max_length, num_beams=1):
        """Creates an empty self-attention cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of sentences B.
            max_length: int or scalar tensor. Number of positions M.
            num_beams: int or scalar tensor. Number of hypotheses K of each
                sentence.

        Returns:
            Dict of zeros: `"key"` `(B, G H, M*K)`, `"value"` `(B, G, M*K, H)`.
        """
        num_slots = max_length * num_beams
        num_heads = self.num_shared_heads
        shapes = {
            "key": (batch_size, self._key_width, num_slots),
            "value": (batch_size, num_heads, num_slots, self.head_dim),
        }
        return {
            name: ops.zeros(shape, dtype=self.compute_dtype)
            for name, shape in shapes.items()
        }

    def static_cache(self, value, key=None):
        """Computes keys and values once for all decoding steps and beams.

        Args:
            value: float tensor `(B, S, D)`.
            key: float tensor `(B, S, D)`. Defaults to `value`.

        Returns:
            Dict: `"key"` `(B, G H, S)`, `"value"` `(B, G, S, H)`.
        """
        self._refuse_positions()
        return self._cached(value if key is None else key, value)

    def _cached(self, key, value, position=None):
        """Projects keys `(B, G H, S)` and values `(B, G, S, H)` for a cache.

        The product of a step's few queries with the keys is faster if the
        positions of a head's keys are side by side.
        """
        if self.position is not None and self.position.rotates:
            keys = self._project(self.key_projection, key)  # (B, G, K, H)
            keys = self.position.rotate(keys, _as_positions(position))
            keys = ops.transpose(keys, (0, 1, 3, 2))
            shape = (-1, self._key_width, ops.shape(key)[1])
            keys = ops.reshape(keys, shape)
        else:
            keys = apply_to_rows(self.key_projection, key)
            keys = ops.transpose(keys, (0, 2, 1))
        return {
            "key": keys,
            "value": self._project(self.value_projection, value),
        }

    def _write_cache(self, cache, key, value, cache_index):
        key = _beams_as_queries(key, cache["key"])  # (B, K, D)
        value = _beams_as_queries(value, cache["value"])
        return {
            name: write_history(cache[name], x, cache_index)
            for name, x in self._cached(key, value, cache_index).items()
        }

    def _attend_to_history(
        self,
        queries,
        cache,
        attention_mask,
        cache_index,
        needs_scores,
        training,
    ):
        """Attends to the positions that exist at a step.

        Returns the context `(B, K, D)` and, if needed, the weights.
        """
        num_beams = ops.shape(queries)[2]
        if attention_mask is None:
            num_slots = ops.shape(cache["key"])[2]
            attention_mask = own_slots(num_beams, num_slots)

        keys, values, mask = used_slots(
            (cache["key"], cache["value"], attention_mask),
            cache_index,
            num_beams,
        )
        num_slots = ops.shape(keys)[2]
        distances = history_distances(num_beams, num_slots, cache_index)
        allowed = self._make_mask(mask, True, distances)
        if self.position is not None:
            rotated = self.position.rotate(queries, _as_positions(cache_index))
            logits = self._compute_cached_logits(rotated, keys)
            logits = self.position.add_to_logits(logits, queries, distances)
        else:
            logits = self._compute_cached_logits(queries, keys)
        context, scores = self._attend(
            logits, values, allowed, training, distances
        )
        if needs_scores:
            # Zeros for the empty slots, which nothing attends to.
            empty = ops.shape(cache["key"])[2] - num_slots
            pads = [[0, 0]] * (len(scores.shape) - 1) + [[0, empty]]
            scores = ops.pad(scores, pads)
        return context, scores

    def _make_mask(self, attention_mask, is_causal, distances):
        if is_causal:
            causal = ops.expand_dims(distances <= 0, 0)  # (1, T, S)
            attention_mask = merge_attention_masks(attention_mask, causal)
        return (
            None
            if attention_mask is None
            else ops.expand_dims(attention_mask, 1)
        )

    def _attend(self, logits, values, allowed, training, distances=None):
        weights = self._softmax(logits, allowed)
        record(self, "weights", weights)  # (B, N, T, S)
        dropped = self.dropout_layer(weights, training=training)
        return self._apply_weights(dropped, values, distances), weights

    def _compute_logits(self, queries, keys, distances=None):
        if self.position is None:
            return self._multiply(queries, keys)
        logits = self._multiply(
            *(
                self.position.rotate(
                    x, ops.arange(ops.shape(x)[2], dtype="int32")
                )
                for x in (queries, keys)
            )
        )
        return self.position.add_to_logits(logits, queries, distances)

    def _multiply(self, queries, keys):
        scale = self.head_dim**-0.5
        queries = self._by_group(queries * scale)
        logits = ops.einsum("bnth,bnsh->bnts", queries, keys)
        return ops.cast(self._by_head(logits), "float32")

    def _compute_cached_logits(self, queries, keys):
        """Computes the logits from keys `(B, G H, S)` of a cache."""
        num_keys = ops.shape(keys)[2]
        shape = (-1, self.num_shared_heads, self.head_dim, num_keys)
        scaled = self._by_group(queries * self.head_dim**-0.5)
        logits = ops.matmul(scaled, ops.reshape(keys, shape))
        return ops.cast(self._by_head(logits), "float32")

    def _by_group(self, x):
        """Joins the heads of a group as more queries of one head.

        `(B, N, T, H)` becomes `(B, G, N / G T, H)`: nothing is repeated.
        """
        if self.num_shared_heads == self.num_heads:
            return x
        shape = ops.shape(x)
        return ops.reshape(x, (shape[0], self.num_shared_heads, -1, shape[3]))

    def _by_head(self, x):
        """Undoes `_by_group`."""
        if self.num_shared_heads == self.num_heads:
            return x
        shape = ops.shape(x)
        return ops.reshape(x, (shape[0], self.num_heads, -1, shape[3]))

    def _softmax(self, logits, allowed):
        if allowed is not None:
            logits = ops.where(allowed, logits, -1e9)
        if logits.shape[-1] == 1:
            # A softmax over one entry is 1, and Keras would warn about it.
            weights = ops.ones_like(logits)
        else:
            weights = ops.softmax(logits, axis=-1)  # (B, N, T, S), Eq. 1
        if allowed is not None:
            # Without an allowed key the softmax is uniform over all keys.
            weights = ops.where(allowed, weights, 0.0)
        return ops.cast(weights, self.compute_dtype)

    def _apply_weights(self, weights, values, distances=None):
        if self.num_shared_heads == self.num_heads:
            context = ops.einsum("bnts,bnsh->btnh", weights, values)
        else:
            context = ops.matmul(self._by_group(weights), values)
            context = ops.transpose(self._by_head(context), (0, 2, 1, 3))
        if self.position is not None:
            context = self.position.add_to_context(context, weights, distances)
        shape = ops.shape(context)
        width = self.num_heads * self.head_dim
        return ops.reshape(context, (shape[0], shape[1], width))

    def _project(self, projection, x):
        num_heads = projection.units // self.head_dim  # N, or G
        if num_heads == 1:
            # tf2onnx exports a transposition with an axis of size 1 as a
            # reshape whose sizes are wrong.
            return ops.expand_dims(apply_to_rows(projection, x), 1)
        heads = (num_heads, self.head_dim)
        x = apply_to_rows(projection, x, heads)  # (B, S, N, H)
        # Heads first: each head's keys are then contiguous in memory, which
        # makes a decoding step with a long cache several times faster.
        return ops.transpose(x, (0, 2, 1, 3))  # (B, N, S, H)

    @property
    def _key_width(self):
        return self.num_shared_heads * self.head_dim

    def _make_position(self):
        shape = (None, self.num_heads, None, self.head_dim)
        shared = self.given_position()
        if isinstance(shared, keras.layers.Layer):
            shared.check_shared(self.name, shape)
            return shared
        position = clone_prototype(shared, "position", self.dtype_policy)
        position.build(shape)
        return position

    def _make_initializer(self, name):
        if name == "output":
            return keras.initializers.GlorotUniform()
        if self.kernel_initializer is not None:
            return clone_initializer(self.kernel_initializer)
        return keras.initializers.VarianceScaling(
            SMALL_VARIANCE, mode="fan_avg", distribution="uniform"
        )

    def _make_projection(self, name, width, use_bias, initializer):
        return make_dense(
            self,
            width,
            name,
            initializer,
            use_bias=use_bias,
            bias_initializer=clone_initializer(self.bias_initializer),
        )

    def compute_output_shape(
        self, query_shape, value_shape=None, key_shape=None
    ):
        return query_shape

    def compute_output_spec(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        return_attention_scores=False,
        *args,
        **kwargs,
    ):
        if cache is None:
            value = query if value is None else value
            rows, num_queries, num_keys = (*query.shape[:2], value.shape[1])
        else:  # the hypotheses of a sentence are its queries
            rows, _, num_keys = cache["key"].shape
            num_queries = None
        output, scores = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in (
                query.shape,
                (rows, *self._score_axes, num_queries, num_keys),
            )
        )
        return call_results(
            output, cache, scores if return_attention_scores else None
        )

    @property
    def _score_axes(self):
        """The axes of attention weights besides batch and positions."""
        return (self.num_heads,)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "attention_dropout": self.attention_dropout,
            "use_bias": self.use_bias,
            "key_bias": self.key_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
            "relative_position": self.relative_position,
            "num_key_value_heads": self.num_key_value_heads,
        }


def _of_all_sentences(mask):
    """Gives a mask `(T, S)` an axis for the batch."""
    if mask is None or has_unknown_rank(mask) or len(mask.shape) != 2:
        return mask
    return ops.expand_dims(mask, 0)


def _beams_as_queries(x, keys):
    """Makes the hypotheses of a sentence a sequence: (B*K, 1, D) -> (B, K, D).

    `keys` is a cache of B rows.
    """
    return ops.reshape(x, (ops.shape(keys)[0], -1, x.shape[-1]))


def _as_positions(index):
    """The position of all queries of a decoding step, `(1,)`."""
    return ops.reshape(ops.cast(index, "int32"), (1,))


def _mask_of_keys(*padding_masks):
    """Turns masks `(B, S)` of real tokens into one attention mask."""
    mask = merge_attention_masks(*padding_masks)
    return None if mask is None else ops.expand_dims(mask, 1)  # (B, 1, S)
