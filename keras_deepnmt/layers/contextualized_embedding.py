"""Embeddings with added role vectors (Weissenborn et al., 2019, Section 4)."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_probability,
    check_sequence,
)
from keras_deepnmt.layers.call_results import call_results
from keras_deepnmt.layers.cloning import initializer_config
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.role_assignment import (
    RoleAssignment,
    check_role_options,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ContextualizedEmbedding(keras.layers.Layer):
    """Adds to each embedding a vector that depends on the token's roles.

    It is the baseline for `RoleInteraction`: roles are predicted from the
    context in the same way, but are added to the embedding instead of
    transforming it. The difference between the two layers is the effect of
    the interaction.

    With roles r from `RoleAssignment` it computes (Weissenborn et al., 2019,
    Section 4, "contextualized"):

        output = U r + e

    Here `num_roles` is the paper's h_r, D its h.
    Differs from the paper: nothing.
    Cost: `h_r D` parameters in addition to those of `RoleAssignment`.

    Args:
        num_roles, assignment, role_encoder, bidirectional, role_units,
        kernel_size, temperature, exclusive: as in `RoleAssignment`.
        positions: `"source"` or `"target"`: the side that the embeddings belong
            to. A model sets it; `"target"` requires `bidirectional=False`.
        dropout: float in [0, 1). Dropout probability on the roles.
        token_dropout: float in [0, 1). Dropout probability on the token
            embeddings, before the roles are predicted. `None` is the value of
            `dropout`; 0 if the model drops embeddings itself.
        output_initializer: Keras initializer of U. `None` is Glorot uniform.
            With `"zeros"` the layer returns the embeddings as they are until
            it is trained, so that it can be added to a trained model.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, S, D)`, embeddings e; with a cache
            `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Ignored: the cache needs no position.
        return_roles: bool. Whether to return the roles as well.
        training: bool. Whether dropout is active and one-hot roles are sampled.
        mask: mask like `padding_mask`, which Keras attaches to the inputs and
            passes itself.

    Returns:
        `output`, a float tensor like `inputs`; then the new cache if one was
        passed; then the roles `(B, S, h_r)` if `return_roles=True`.

    Raises:
        ValueError: as in `RoleAssignment`; for unknown `positions` and
            initializers; at build, for `positions="target"` with
            `bidirectional=True`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    inputs, which is attached to the output too.

    Example:
    >>> layer = keras_deepnmt.layers.ContextualizedEmbedding(num_roles=5)
    >>> layer(np.zeros((3, 7, 8), "float32")).shape
    TensorShape([3, 7, 8])

    Reference:
        - [Weissenborn et al., 2019](https://openreview.net/forum?id=ryx3_iAcY7).
    """

    slots = ("source_embedding_layer", "target_embedding_layer")

    def __init__(
        self,
        num_roles,
        assignment="dense",
        role_encoder="lstm",
        bidirectional=True,
        role_units=None,
        kernel_size=7,
        temperature=5.0,
        exclusive=False,
        positions="source",
        dropout=0.3,
        token_dropout=None,
        output_initializer=None,
        **kwargs,
    ):
        check_choice("positions", positions, ("source", "target"))
        check_role_options(num_roles, assignment, temperature)
        check_probability("dropout", dropout)
        if token_dropout is not None:
            check_probability("token_dropout", token_dropout)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_roles = num_roles
        self.assignment = assignment
        self.role_encoder = role_encoder
        self.bidirectional = bidirectional
        self.role_units = role_units
        self.kernel_size = kernel_size
        self.temperature = temperature
        self.exclusive = exclusive
        self.positions = positions
        self.dropout = dropout
        self.token_dropout = token_dropout
        self.output_initializer = initializer_config(
            output_initializer, "output_initializer"
        )

    def build(self, inputs_shape):
        check_sequence("inputs", inputs_shape)
        if self.positions == "target" and self.bidirectional:
            raise ValueError(
                '`bidirectional` must be False for positions="target": roles '
                "must not depend on later tokens, which the model has yet to "
                'predict. Received: bidirectional=True, positions="target". '
                "Pass bidirectional=False."
            )
        rate = self.token_dropout
        self.embedding_dropout = self._make_dropout(
            "embedding_dropout", self.dropout if rate is None else rate
        )
        self.role_dropout = self._make_dropout("role_dropout", self.dropout)
        self.roles = RoleAssignment(
            self.num_roles,
            assignment=self.assignment,
            role_encoder=self.role_encoder,
            bidirectional=self.bidirectional,
            role_units=self.role_units,
            kernel_size=self.kernel_size,
            temperature=self.temperature,
            exclusive=self.exclusive,
            name="roles",
            dtype=self.dtype_policy,
        )
        self.roles.build(inputs_shape)
        self._build_combination(inputs_shape[-1])

    def call(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        return_roles=False,
        training=None,
        mask=None,
    ):
        embeddings = self.embedding_dropout(inputs, training=training)
        if cache is None:
            roles = self.roles(
                embeddings,
                padding_mask=first_mask(padding_mask, mask),
                training=training,
            )
        else:
            roles, cache = self.roles(
                embeddings, cache=cache, training=training
            )
        # (B, S, h_r)
        dropped = self.role_dropout(roles, training=training)
        output = self._combine(embeddings, dropped)
        return call_results(output, cache, roles if return_roles else None)

    def init_cache(self, batch_size, max_length):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of rows, B*K.
            max_length: int or scalar tensor. Ignored.

        Returns:
            The cache of `RoleEncoder.init_cache`.
        """
        return self.roles.init_cache(batch_size, max_length)

    def _build_combination(self, width):
        self.role_embedding = self._make_linear(
            "role_embedding", width, self.output_initializer
        )
        self.role_embedding.build((None, None, self.num_roles))

    def _combine(self, embeddings, roles):
        return self.role_embedding(roles) + embeddings

    def _make_linear(self, name, width, initializer=None):
        return keras.layers.Dense(
            width,
            use_bias=False,
            kernel_initializer=initializer or "glorot_uniform",
            name=name,
            dtype=self.dtype_policy,
        )

    def _make_dropout(self, name, rate):
        return Dropout(rate, name=name, dtype=self.dtype_policy)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_output_spec(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        return_roles=False,
        training=None,
        mask=None,
    ):
        shapes = [tuple(inputs.shape), (*inputs.shape[:-1], self.num_roles)]
        output, roles = (
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in shapes
        )
        return call_results(output, cache, roles if return_roles else None)

    def get_config(self):
        return {
            **super().get_config(),
            "num_roles": self.num_roles,
            "assignment": self.assignment,
            "role_encoder": self.role_encoder,
            "bidirectional": self.bidirectional,
            "role_units": self.role_units,
            "kernel_size": self.kernel_size,
            "temperature": self.temperature,
            "exclusive": self.exclusive,
            "positions": self.positions,
            "dropout": self.dropout,
            "token_dropout": self.token_dropout,
            "output_initializer": self.output_initializer,
        }
