"""Prediction fused with one from source embeddings (Liu et al., 2021)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_integer,
    check_mask,
    check_minimum,
    check_positive,
    check_probability,
    check_sequence,
)
from keras_deepnmt.layers.cloning import (
    clone_prototype,
    initializer_config,
    prototype_config,
    prototype_of,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.feed_forward import FeedForward
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.layers.pooling import pool_positions
from keras_deepnmt.layers.recording import record

MODES = ("hard", "soft", "gate")
SURFACES = ("attention", "mean", "max")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class SurfaceFusion(keras.layers.Layer):
    """Fuses the decoder's prediction with one from the source embeddings.

    Normally the encoder and the decoder lie between the embeddings of a source
    word and of its translation. Here a second prediction is made directly from
    the source embeddings, through a single attention. This also makes the
    embeddings of the two languages more similar.

    Given decoder states h, memory M and source embeddings X (Liu et al., 2021,
    SurfaceFusion), r is the surface that h attends to:

        r = attention(query=stop_gradient(h), key=stop_gradient(M), value=X)
        E = project(g(h)),  l = project(g(r)),  log P = log_softmax(l / tau)
        hard: w * log_softmax(E) + (1 - w) * log P
        soft: log_softmax(E + log P) = log_softmax(E + l / tau)
        gate: as hard, with w = sigmoid(v . [h; r]) at each position

    Here `weight` is the paper's lambda (w), `temperature` its tau; g is the
    identity, or `x + dropout(FFN(x))` with `feed_forward`.
    Differs from the paper: `gate`, `feed_forward` (in its recipe) and other
    surfaces are the released code's; the key has no bias unless `key_bias`, and
    Q, K and V start with a tenth of Glorot's variance.
    As in that code, hard fusion is not renormalized: it sums to at most 1.
    Cost: `4 D^2 + 3 D` parameters, with `feed_forward` `2 D F + F + D` more,
    with `gate` `2 D` more; a second projection to V words; O(B T S D) time.

    Args:
        mode: `"hard"`, `"soft"` or `"gate"`.
        weight: float in [0, 1]. Weight of the decoder in hard fusion.
        temperature: float above 0. Divides the surface's logits; larger values
            reduce their influence.
        surface: `"attention"`, or `"mean"` or `"max"` of the embeddings over
            the real positions, which is the same for all target positions.
        feed_forward: bool. Whether one feed-forward network is applied to both
            states and surface.
        intermediate_dim: int. Its width F. Defaults to 4 D.
        activation: Keras activation of that network.
        num_heads: int. Heads N of the attention.
        output_projection: unbuilt `keras.layers.Layer` from states to logits,
            which is cloned; not needed if calls pass `project`.
        dropout: float in [0, 1). Dropout on the feed-forward output.
        attention_dropout: float in [0, 1). Dropout on attention weights. On
            Multi30k the decoder of soft fusion relied less on the surface with
            0.2, and BLEU was higher.
        key_bias: bool. Whether the key projection has a bias.
        attention_initializer: Keras initializer of the attention's query, key
            and value projections; `None` for the one of `MultiHeadAttention`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, decoder states; with a static cache
            `(B*K, 1, D)`.
        memory: float tensor `(B, S, D)`, needed for `surface="attention"`.
            Ignored if a cache is passed.
        source_embeddings: float tensor `(B, S, D)`, without positions.
        memory_padding_mask: bool tensor `(B, S)`, `True` = real token. `None`
            means that all tokens are real.
        static_cache: dict from `static_cache`.
        project: function or layer from states `(..., D)` to logits
            `(..., V)`, such as a tied embedding. A functional model does not
            own the weights of a layer passed here: see `output_projection`.
        training: bool. Whether dropout is active.
        memory_mask, source_embeddings_mask: masks like `memory_padding_mask`,
            which Keras attaches to the tensors and passes itself.

    Returns:
        Float32 tensor `(B, T, V)`, fused log-probabilities; with a static
        cache `(B*K, 1, V)`.

    Raises:
        ValueError: for an option out of range; at build, for embeddings of
            another width than the inputs; at call, without a projection, and
            without the memory or the embeddings that are needed.

    Masking: uses `memory_padding_mask`, or else the mask that Keras attaches to
    `memory` or `source_embeddings`; target positions are independent. The mask
    of `inputs` is attached to the output.

    Example:
    >>> inputs = [keras.Input((None, 8)) for _ in range(3)]
    >>> fusion = keras_deepnmt.layers.SurfaceFusion(
    ...     output_projection=keras.layers.Dense(13)
    ... )
    >>> model = keras.Model(inputs, fusion(*inputs))
    >>> target, source = np.zeros((3, 5, 8)), np.zeros((3, 7, 8))
    >>> model([target, source, source]).shape
    TensorShape([3, 5, 13])

    Reference:
        - [Liu et al., 2021](https://arxiv.org/abs/2012.14768). Released code:
          https://github.com/SunbowLiu/SurfaceFusion.
    """

    slots = ("output_fusion",)

    def __init__(
        self,
        mode="hard",
        weight=0.8,
        temperature=1.0,
        surface="attention",
        feed_forward=False,
        intermediate_dim=None,
        activation="relu",
        num_heads=1,
        output_projection=None,
        dropout=0.1,
        attention_dropout=0.0,
        key_bias=False,
        attention_initializer=None,
        **kwargs,
    ):
        check_choice("mode", mode, MODES)
        check_choice("surface", surface, SURFACES)
        check_integer("num_heads", num_heads)
        check_probability("dropout", dropout)
        check_probability("attention_dropout", attention_dropout)
        check_minimum("weight", weight, 0)
        _check_option(weight <= 1, "weight", weight, "in [0, 1]")
        check_positive("temperature", temperature)
        if intermediate_dim is not None:
            check_integer("intermediate_dim", intermediate_dim)
        is_valid = feed_forward or intermediate_dim is None
        rule = "None unless feed_forward=True"
        _check_option(is_valid, "intermediate_dim", intermediate_dim, rule)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.mode = mode
        self.weight = weight
        self.temperature = temperature
        self.surface = surface
        self.feed_forward = feed_forward
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.num_heads = num_heads
        self.output_projection = prototype_config(output_projection)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.key_bias = key_bias
        self.attention_initializer = initializer_config(attention_initializer)

    def build(
        self, inputs_shape, memory_shape=None, source_embeddings_shape=None
    ):
        check_sequence("inputs", inputs_shape)
        width = inputs_shape[-1]
        source_shape = source_embeddings_shape or inputs_shape
        if source_shape[-1] != width:
            raise ValueError(
                "`source_embeddings` must be as wide as `inputs`, since they "
                f"share one projection. Received: shapes {source_shape} and "
                f"{inputs_shape}."
            )
        if self.surface == "attention":
            self.attention = MultiHeadAttention(
                self.num_heads,
                attention_dropout=self.attention_dropout,
                key_bias=self.key_bias,
                kernel_initializer=self.attention_initializer,
                name="attention",
                dtype=self.dtype_policy,
            )
            self.attention.build(inputs_shape, source_shape, memory_shape)
        if self.feed_forward:
            self.feed_forward_layer = FeedForward(
                self.intermediate_dim or 4 * width,
                activation=self.activation,
                name="feed_forward",
                dtype=self.dtype_policy,
            )
            self.feed_forward_layer.build(inputs_shape)
            self.dropout_layer = Dropout(
                self.dropout, name="dropout", dtype=self.dtype_policy
            )
        if self.mode == "gate":
            self.gate = self.add_weight(
                name="gate", shape=(2, width), initializer="glorot_uniform"
            )
        if self.output_projection is not None:
            self.projection = clone_prototype(
                self.output_projection, "projection", self.dtype_policy
            )
            self.projection.build(inputs_shape)

    def call(
        self,
        inputs,
        memory=None,
        source_embeddings=None,
        memory_padding_mask=None,
        static_cache=None,
        project=None,
        training=None,
        memory_mask=None,
        source_embeddings_mask=None,
    ):
        if static_cache is None and source_embeddings is None:
            raise ValueError(
                "`source_embeddings` must be passed, or a `static_cache`. "
                "Received: source_embeddings=None, static_cache=None."
            )
        if self.surface == "attention" and static_cache is memory is None:
            raise ValueError(
                "`memory` must be passed, or a `static_cache`: its states are "
                'the keys of `surface="attention"`. '
                "Received: memory=None, static_cache=None."
            )
        if static_cache is None:
            check_alike(
                "memory", [memory], "source_embeddings", source_embeddings
            )
            check_alike(
                "source_embeddings", [source_embeddings], "inputs", inputs, 1
            )
            shape = source_embeddings.shape[:2]
            check_mask("memory_padding_mask", memory_padding_mask, shape)
        mask = first_mask(
            memory_padding_mask, memory_mask, source_embeddings_mask
        )
        if self.surface == "attention":
            surface = self._attend(
                inputs, memory, source_embeddings, mask, static_cache, training
            )
            # Concatenated, so that a step reads the large matrix once.
            both = ops.concatenate([inputs, surface], axis=1)  # (B, 2T, D)
            logits = self._compute_logits(both, project, training)
            return self._fuse(inputs, surface, *ops.split(logits, 2, axis=1))
        pooled = static_cache or self._pool_surface(
            source_embeddings, mask, project, training
        )
        # Beams share their sentence's surface: (B*K, 1, D) -> (B, K, D)
        shape = ops.shape(inputs)
        inputs = ops.reshape(
            inputs, (ops.shape(pooled["surface"])[0], -1, inputs.shape[-1])
        )
        logits = self._compute_logits(inputs, project, training)
        fused = self._fuse(inputs, pooled["surface"], logits, pooled["logits"])
        return ops.reshape(fused, (*shape[:-1], fused.shape[-1]))

    def static_cache(
        self, memory, source_embeddings, memory_padding_mask=None, project=None
    ):
        """Computes all that does not depend on the target, once per sentence.

        Args:
            memory: float tensor `(B, S, D)`.
            source_embeddings: float tensor `(B, S, D)`.
            memory_padding_mask: bool tensor `(B, S)`. Used only by `"mean"` and
                `"max"`, which without it are computed at each step.
            project: as in the call; used only by `"mean"` and `"max"`.

        Returns:
            Dict of the attention's keys, `(B, D, S)`, and values,
            `(B, N, S, H)`; or of `surface` `(B, 1, D)` and its `logits`
            `(B, 1, V)`, or empty.
        """
        if self.surface == "attention":
            return self.attention.static_cache(source_embeddings, memory)
        if memory_padding_mask is None:
            return {}
        return self._pool_surface(
            source_embeddings, memory_padding_mask, project
        )

    def _attend(self, inputs, memory, embeddings, mask, static_cache, training):
        surface = self.attention(
            ops.stop_gradient(inputs),
            embeddings,
            None if memory is None else ops.stop_gradient(memory),
            attention_mask=None if mask is None else ops.expand_dims(mask, 1),
            cache=static_cache,
            training=training,
        )
        return surface if static_cache is None else surface[0]

    def _pool_surface(self, embeddings, mask, project, training=None):
        surface = pool_positions(embeddings, mask, self.surface)  # (B, 1, D)
        logits = self._compute_logits(surface, project, training)
        return {"surface": surface, "logits": logits}

    def _compute_logits(self, x, project, training):
        if self.feed_forward:  # g, the same for states and surface
            hidden = self.feed_forward_layer(x)
            x = x + self.dropout_layer(hidden, training=training)
        return self._get_projection(project)(x)

    def _fuse(self, inputs, surface, logits, surface_logits):
        logits = ops.cast(logits, "float32")
        surface_logits = ops.cast(surface_logits, "float32") / self.temperature
        if self.mode == "soft":
            return ops.log_softmax(logits + surface_logits, axis=-1)
        share = self.weight
        if self.mode == "gate":
            score = ops.matmul(inputs, ops.expand_dims(self.gate[0], 1))
            score += ops.matmul(surface, ops.expand_dims(self.gate[1], 1))
            share = ops.sigmoid(ops.cast(score, "float32"))  # (B, T, 1)
            record(self, "share", share)
        log_probs = ops.log_softmax(logits, axis=-1)
        surface_log_probs = ops.log_softmax(surface_logits, axis=-1)
        return share * log_probs + (1.0 - share) * surface_log_probs

    def _get_projection(self, project):
        if project is None and self.output_projection is None:
            raise ValueError(
                "`output_projection` must be a layer from states to the logits "
                "of the vocabulary, such as keras.layers.Dense(vocabulary "
                "size). Received: output_projection=None, and the call "
                "received project=None. Pass one of them."
            )
        return self.projection if project is None else project

    def compute_output_shape(
        self, inputs_shape, memory_shape=None, source_embeddings_shape=None
    ):
        projection = self._get_projection(prototype_of(self.output_projection))
        return projection.compute_output_shape(inputs_shape)

    def compute_output_spec(self, inputs, *args, project=None, **kwargs):
        # Needed because JAX cannot trace a call with a function argument.
        logits = self._get_projection(project)(inputs)
        return keras.KerasTensor(logits.shape, dtype="float32")

    def get_config(self):
        names = (
            "mode",
            "weight",
            "temperature",
            "surface",
            "feed_forward",
            "intermediate_dim",
            "num_heads",
            "output_projection",
            "dropout",
            "attention_dropout",
            "key_bias",
            "attention_initializer",
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "activation": keras.activations.serialize(self.activation),
        }


def _check_option(is_valid, name, value, rule):
    if not is_valid:
        raise ValueError(
            f"`{name}` must be {rule}. Received: {name}={value!r}."
        )
