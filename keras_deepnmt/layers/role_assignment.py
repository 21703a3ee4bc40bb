"""Roles of tokens in their context (Weissenborn et al., 2019, Eq. 6)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
    check_positive,
    check_sequence,
)
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.recording import record
from keras_deepnmt.layers.role_encoder import RoleEncoder

ASSIGNMENTS = ("dense", "softmax", "onehot")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RoleAssignment(keras.layers.Layer):
    """Predicts the role of each token from the tokens around it.

    German *der* is an article in one place and a pronoun in another. A small
    network reads the sentence and predicts, for each token, how strongly it
    plays each of a few latent roles ("dense", "softmax"), or which single role
    it plays ("onehot").

    With `hidden` from `RoleEncoder` it computes (Weissenborn et al., 2019,
    Section 3.1, Eq. 6):

        dense   = tanh(W hidden + b)
        softmax = softmax(U dense)
        onehot  ~ Categorical(softmax)

    Here `num_roles` is the paper's h_r. In training a one-hot role is a
    Gumbel-softmax sample, `softmax((U dense + g) / temperature)` with Gumbel
    noise g; otherwise it is the most probable role. The temperature is a
    non-trainable weight, which `training.TemperatureDecay` reduces. The paper
    starts one-hot training from a trained softmax assignment.
    Differs from the paper: nothing that it specifies; the relaxed sample is
    used as it is (soft).
    Cost: in addition to the role encoder's, `I h_r + h_r` parameters, where I
    is its output width, and `h_r^2` except for dense roles.

    Args:
        num_roles: int, at least 2. Number of roles, the paper's h_r.
        assignment: `"dense"`, `"softmax"` or `"onehot"`.
        role_encoder: `"lstm"` or `"cnn"`.
        bidirectional: bool. Whether a role depends on later tokens too. Must
            be `False` on the target side.
        role_units: int. Units U of the role encoder, per direction. Defaults
            to `num_roles`.
        kernel_size: int. Number of tokens that the convolution sees.
        temperature: float. Initial temperature of the Gumbel-softmax.
        exclusive: bool. Whether a role depends on earlier tokens only, and not
            on the token itself; requires `bidirectional=False`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, S, D)`; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Ignored: the cache needs no position.
        training: bool. Whether one-hot roles are sampled.
        mask: mask like `padding_mask`, which Keras attaches to the inputs and
            passes itself.

    Returns:
        Float tensor `(B, S, h_r)`; then the new cache if one was passed.

    Raises:
        ValueError: for an unknown assignment or fewer than two roles; at
            build, as in `RoleEncoder`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    inputs, which is attached to the output too. The roles of padding have no
    meaning.

    Example:
    >>> assign = keras_deepnmt.layers.RoleAssignment(5, "softmax")
    >>> roles = assign(np.ones((3, 7, 8), "float32"))
    >>> roles.shape, bool(np.allclose(np.sum(roles, axis=-1), 1))
    (TensorShape([3, 7, 5]), True)

    Reference:
        - [Weissenborn et al., 2019](https://openreview.net/forum?id=ryx3_iAcY7).
    """

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
        **kwargs,
    ):
        check_role_options(num_roles, assignment, temperature)
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
        if assignment == "onehot":
            self.seed_generator = keras.random.SeedGenerator()

    def build(self, inputs_shape):
        check_sequence("inputs", inputs_shape)
        self.encoder = RoleEncoder(
            self.role_units or self.num_roles,
            role_encoder=self.role_encoder,
            bidirectional=self.bidirectional,
            kernel_size=self.kernel_size,
            exclusive=self.exclusive,
            name="encoder",
            dtype=self.dtype_policy,
        )
        self.encoder.build(inputs_shape)
        self.dense_roles = self._make_dense("dense_roles", activation="tanh")
        self.dense_roles.build(self.encoder.compute_output_shape(inputs_shape))
        if self.assignment == "dense":
            return
        self.role_logits = self._make_dense("role_logits", use_bias=False)
        self.role_logits.build((*inputs_shape[:-1], self.num_roles))
        if self.assignment == "onehot":
            # Stays float32: bfloat16 rounds 0.9995 * 5 to 5.
            self.current_temperature = self.add_weight(
                name="temperature",
                shape=(),
                initializer=keras.initializers.Constant(self.temperature),
                trainable=False,
                autocast=False,
            )

    def call(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        training=None,
        mask=None,
    ):
        if cache is None:
            hidden = self.encoder(
                inputs, padding_mask=first_mask(padding_mask, mask)
            )
        else:
            hidden, cache = self.encoder(inputs, cache=cache)
        roles = self.dense_roles(hidden)  # (B, S, h_r)
        if self.assignment != "dense":
            logits = ops.cast(self.role_logits(roles), "float32")
            if self.assignment == "onehot":
                roles = self._choose_roles(logits, training)
            else:
                roles = ops.softmax(logits, axis=-1)
            roles = ops.cast(roles, self.compute_dtype)
        record(self, "roles", roles)
        return roles if cache is None else (roles, cache)

    def init_cache(self, batch_size, max_length):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of rows, B*K.
            max_length: int or scalar tensor. Ignored.

        Returns:
            The cache of `RoleEncoder.init_cache`.
        """
        return self.encoder.init_cache(batch_size, max_length)

    def _choose_roles(self, logits, training):
        if not training:
            # Not `ops.argmax`, whose operations on bits ONNX does not have.
            _, largest = ops.top_k(logits, 1)
            return ops.one_hot(ops.squeeze(largest, -1), self.num_roles)
        uniform = keras.random.uniform(
            ops.shape(logits),
            minval=1e-20,  # log(0) is not finite
            dtype="float32",
            seed=self.seed_generator,
        )
        gumbel = -ops.log(-ops.log(uniform))
        return ops.softmax(
            (logits + gumbel) / self.current_temperature, axis=-1
        )

    def _make_dense(self, name, **options):
        return keras.layers.Dense(
            self.num_roles, name=name, dtype=self.dtype_policy, **options
        )

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.num_roles)

    def compute_output_spec(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        training=None,
        mask=None,
    ):
        shape = self.compute_output_shape(inputs.shape)
        roles = keras.KerasTensor(shape, dtype=self.compute_dtype)
        return roles if cache is None else (roles, cache)

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
        }


def check_role_options(num_roles, assignment, temperature):
    """Raises a `ValueError` if the number or kind of the roles is invalid."""
    check_integer("num_roles", num_roles, minimum=2)
    check_choice("assignment", assignment, ASSIGNMENTS)
    check_positive("temperature", temperature)
