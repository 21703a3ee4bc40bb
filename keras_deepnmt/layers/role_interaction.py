"""Interaction of embeddings with roles (Weissenborn et al., 2019, Eq. 5-8)."""

import keras
from keras import ops

from keras_deepnmt.layers.cloning import clone_initializer
from keras_deepnmt.layers.contextualized_embedding import (
    ContextualizedEmbedding,
)
from keras_deepnmt.xla import tuned


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RoleInteraction(ContextualizedEmbedding):
    """Transforms each embedding by the roles that its token plays.

    An embedding table gives a word the same vector in every context, and
    leaves it to the layers above to find out which of its meanings matters.
    Here the roles of a token are predicted from its context, and each role has
    its own matrix that transforms the embedding. Apply it to the source or
    target embeddings before the first block.

    With roles r from `RoleAssignment` it computes (Weissenborn et al., 2019,
    Eq. 5, 7 and 8):

        full:    output = sum_i r_i U_i e  (+ e)
        rank 1:  output = U_o [(U_r^T r) * (U_e e)]  (+ e)

    Here `num_roles` is the paper's h_r, D its h, `residual` its identity role
    e. Rank 1 is the full form with `U_i = U_o diag(U_r[i]) U_e`.
    Differs from the paper: nothing that it specifies. Each `U_i` is
    initialized Glorot uniform. Dropout is applied to the embeddings before the
    roles are predicted; a model's own dropout follows after the positions. The
    presets set `token_dropout=0.0`: embeddings are dropped once, where the
    plain model drops them.
    Cost: `h_r D^2` parameters, or `h_r D + 2 D^2` with rank 1, in addition to
    those of `RoleAssignment`; the same number of multiplications per token.
    Training with full matrices stores h_r times the size of the embeddings,
    other calls 8 times.

    Args:
        num_roles: int, at least 2. Number of roles, the paper's h_r.
        assignment: `"dense"`, `"softmax"` or `"onehot"`.
        residual: bool. Whether the embedding is added to the output.
        rank_one: bool. Whether the matrices are factorized (Eq. 8).
        role_encoder: `"lstm"` or `"cnn"`.
        bidirectional: bool. Whether a role depends on later tokens too. Must
            be `False` on the target side.
        role_units, kernel_size, temperature, exclusive: as in
            `RoleAssignment`.
        positions: `"source"` or `"target"`: the side that the embeddings belong
            to. A model sets it; `"target"` requires `bidirectional=False`.
        dropout: float in [0, 1). Dropout probability on the roles.
        token_dropout: float in [0, 1). Dropout probability on the token
            embeddings, before the roles are predicted. `None` is the value of
            `dropout`; 0 if the model drops embeddings itself.
        output_initializer: Keras initializer of each `U_i`, or of `U_o` with
            rank 1; one with a seed gives all `U_i` the same values. `None` is
            Glorot uniform. With `"zeros"` and `residual` the
            layer returns the embeddings as they are until it is trained, so
            that it can be added to a trained model.
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
    >>> layer = keras_deepnmt.layers.RoleInteraction(5, "softmax")
    >>> embeddings = np.zeros((3, 7, 8), "float32")
    >>> output, roles = layer(embeddings, return_roles=True)
    >>> output.shape, roles.shape
    (TensorShape([3, 7, 8]), TensorShape([3, 7, 5]))

    Reference:
        - [Weissenborn et al., 2019](https://openreview.net/forum?id=ryx3_iAcY7).
    """

    slots = ("source_embedding_layer", "target_embedding_layer")

    def __init__(
        self,
        num_roles,
        assignment="dense",
        residual=True,
        rank_one=False,
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
        super().__init__(
            num_roles,
            assignment=assignment,
            role_encoder=role_encoder,
            bidirectional=bidirectional,
            role_units=role_units,
            kernel_size=kernel_size,
            temperature=temperature,
            exclusive=exclusive,
            positions=positions,
            dropout=dropout,
            token_dropout=token_dropout,
            output_initializer=output_initializer,
            **kwargs,
        )
        self.residual = residual
        self.rank_one = rank_one

    def _build_combination(self, width):
        if self.rank_one:
            self.role_factor = self._make_linear("role_factor", width)
            self.role_factor.build((None, None, self.num_roles))
            self.embedding_factor = self._make_linear("embedding_factor", width)
            self.embedding_factor.build((None, None, width))
            self.output_factor = self._make_linear(
                "output_factor", width, self.output_initializer
            )
            self.output_factor.build((None, None, width))
            return
        # Glorot's limit for one matrix: Keras' initializer would treat the
        # roles as the positions of a convolution kernel.
        limit = (3.0 / width) ** 0.5
        uniform = keras.initializers.RandomUniform(-limit, limit)
        self.role_kernels = self.add_weight(
            name="role_kernels",
            shape=(self.num_roles, width, width),
            initializer=self._draw_each if self.output_initializer else uniform,
        )

    def _draw_each(self, shape, dtype=None):
        """Initializes each matrix by itself, for the same reason."""
        initializer = keras.initializers.get(self.output_initializer)
        # An initializer repeats its values; a clone has others.
        return ops.stack(
            [
                clone_initializer(initializer)(shape[1:], dtype=dtype)
                for _ in range(shape[0])
            ]
        )

    def _combine(self, embeddings, roles):
        if self.rank_one:
            product = self.role_factor(roles) * self.embedding_factor(
                embeddings
            )
            output = self.output_factor(product)  # Eq. 8
        else:
            output = self._transform(embeddings, roles)  # Eq. 5
        return output + embeddings if self.residual else output

    def _transform(self, embeddings, roles):
        # Products of matrices, several times faster than `einsum`, for which
        # LiteRT has no operation.
        batch_size, length = ops.shape(embeddings)[:2]
        width = embeddings.shape[-1]
        embeddings = ops.expand_dims(embeddings, 2)  # (B, S, 1, D)
        output = 0.0
        for start in range(0, self.num_roles, tuned.ROLES_AT_ONCE):
            part = slice(start, start + tuned.ROLES_AT_ONCE)
            kernels = self.role_kernels[part]
            rows = kernels.shape[0] * width
            product = ops.expand_dims(roles[..., part], -1) * embeddings
            product = ops.reshape(product, (batch_size, length, rows))
            kernel = ops.reshape(kernels, (rows, width))
            output = output + ops.matmul(product, kernel)
        return output

    def get_config(self):
        return {
            **super().get_config(),
            "residual": self.residual,
            "rank_one": self.rank_one,
        }
