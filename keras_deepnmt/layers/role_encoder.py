"""Context encoder for role prediction (Weissenborn et al., 2019, Eq. 4)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
    check_mask,
    check_sequence,
)
from keras_deepnmt.layers.keras_masks import first_mask

ROLE_ENCODERS = ("lstm", "cnn")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RoleEncoder(keras.layers.Layer):
    """Encodes the tokens around each token with a small network.

    To predict a role, little of the sentence is needed: whether a verb came
    before, or what kind of word comes next. A narrow LSTM provides that, in
    both directions for a source, and from left to right for a target, which is
    generated token by token; a convolution sees a few neighbors only.

    It computes (Weissenborn et al., 2019, Eq. 4 and Section 4, "+CNN"):

        hidden = BiLSTM(e), LSTM(e) or ReLU(convolution(e))

    Here `hidden` is the paper's r with a hat.
    Differs from the paper: nothing that it specifies. It does not specify the
    width, or the activation of the convolution.
    Cost: each direction of the LSTM has `4 (D U + U^2 + U)` parameters, the
    convolution `kernel_size D U + U`.

    Args:
        role_units: int. Number of units U, per direction.
        role_encoder: `"lstm"` or `"cnn"`.
        bidirectional: bool. Whether later tokens are read too. Must be `False`
            for incremental decoding.
        kernel_size: int. Number of tokens that the convolution sees.
        exclusive: bool. Whether the output at a token depends on earlier tokens
            only, and not on the token itself; requires `bidirectional=False`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, S, D)`; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Ignored: the cache needs no position.
        mask: mask like `padding_mask`, which Keras attaches to the inputs and
            passes itself.

    Returns:
        Float tensor `(B, S, U)`, from a bidirectional LSTM `(B, S, 2 U)`; then
        the new cache if one was passed.

    Raises:
        ValueError: for an unknown role encoder, or for `exclusive` with
            `bidirectional`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    inputs, which is attached to the output too: the backward direction begins
    at the last real token. The outputs at padding have no meaning.

    Example:
    >>> encoder = keras_deepnmt.layers.RoleEncoder(5)
    >>> encoder(np.zeros((3, 7, 8), "float32")).shape
    TensorShape([3, 7, 10])

    Reference:
        - [Weissenborn et al., 2019](https://openreview.net/forum?id=ryx3_iAcY7).
    """

    def __init__(
        self,
        role_units,
        role_encoder="lstm",
        bidirectional=True,
        kernel_size=7,
        exclusive=False,
        **kwargs,
    ):
        check_integer("role_units", role_units)
        check_integer("kernel_size", kernel_size)
        check_choice("role_encoder", role_encoder, ROLE_ENCODERS)
        if exclusive and bidirectional:
            raise ValueError(
                "`exclusive` reads earlier tokens only, `bidirectional` reads "
                "later ones too. Received: exclusive=True, "
                "bidirectional=True. Pass bidirectional=False."
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.role_units = role_units
        self.role_encoder = role_encoder
        self.bidirectional = bidirectional
        self.kernel_size = kernel_size
        self.exclusive = exclusive

    def build(self, inputs_shape):
        check_sequence("inputs", inputs_shape)
        self.width = inputs_shape[-1]
        if self.role_encoder == "cnn":
            self.convolution = keras.layers.Conv1D(
                self.role_units,
                self.kernel_size,
                activation="relu",
                data_format="channels_last",
                name="convolution",
                dtype=self.dtype_policy,
            )
            # Built for any length, since padding is added to the sentence.
            self.convolution.build((None, None, self.width))
            return
        if self.bidirectional:
            self.lstm = self._make_bidirectional_lstm()
        else:
            self.lstm = self._make_lstm("lstm")
        self.lstm.build(inputs_shape)

    def _make_lstm(self, name, go_backwards=False):
        return keras.layers.LSTM(
            self.role_units,
            return_sequences=True,
            go_backwards=go_backwards,
            # cuDNN cannot be compiled by XLA or exported, and it rejects rows
            # that are all padding, which occur in batches that are filled up.
            use_cudnn=False,
            name=name,
            dtype=self.dtype_policy,
        )

    def _make_bidirectional_lstm(self):
        """Creates a bidirectional LSTM, also while a model is being loaded.

        `keras.layers.Bidirectional` serializes its argument and creates both
        directions from that. During loading Keras takes objects of equal `id`
        for one shared object, even if one of them was deleted before. So the
        argument must have an `id` that was not used, keep it, and be serialized
        for one direction only.
        """
        options = {"name": "bidirectional", "dtype": self.dtype_policy}
        rejected = []
        while True:
            lstm = self._make_lstm("lstm")
            if "shared_object_id" not in keras.saving.serialize_keras_object(
                lstm
            ):
                break
            rejected.append(lstm)  # keeps its id from being used again
        # During loading, Keras marks an object that it serializes twice.
        if "shared_object_id" not in keras.saving.serialize_keras_object(lstm):
            return keras.layers.Bidirectional(lstm, **options)
        # A function, since a layer that is an attribute would be saved.
        self._keep_lstm = lambda: lstm
        backward = self._make_lstm("backward_lstm", go_backwards=True)
        return keras.layers.Bidirectional(
            lstm, backward_layer=backward, **options
        )

    def call(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        mask=None,
    ):
        check_mask("padding_mask", padding_mask, inputs.shape[:2])
        padding_mask = first_mask(padding_mask, mask)
        encode = (
            self._run_convolution
            if self.role_encoder == "cnn"
            else self._run_lstm
        )
        if cache is not None:
            return encode(inputs, padding_mask, cache)
        return encode(inputs, padding_mask)

    def init_cache(self, batch_size, max_length):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of rows, B*K.
            max_length: int or scalar tensor. Ignored.

        Returns:
            Dict of zeros: `{"hidden", "cell"}` of an LSTM, each `(B*K, U)`;
            `{"inputs"}` of a convolution, the earlier inputs that it sees.

        Raises:
            ValueError: if `bidirectional=True`.
        """
        if self.bidirectional:
            raise ValueError(
                "`bidirectional` must be False for incremental decoding, where "
                "later tokens are not known yet. Received: "
                "bidirectional=True. Pass bidirectional=False."
            )
        if self.role_encoder == "cnn":
            shape = (batch_size, self._num_earlier_tokens(), self.width)
            return {"inputs": ops.zeros(shape, dtype=self.compute_dtype)}
        zeros = ops.zeros(
            (batch_size, self.role_units), dtype=self.compute_dtype
        )
        return {"hidden": zeros, "cell": zeros}

    def _run_lstm(self, inputs, padding_mask, cache=None):
        if cache is None:
            hidden = self.lstm(inputs, mask=padding_mask)
            if self.exclusive:
                hidden = ops.pad(hidden[:, :-1], ((0, 0), (1, 0), (0, 0)))
            return hidden
        previous = cache["hidden"]
        # The cell alone: the loop of the LSTM costs more than one step.
        hidden, (_, cell) = self.lstm.cell(
            inputs[:, 0], [previous, cache["cell"]]
        )
        output_hidden = previous if self.exclusive else hidden
        return ops.expand_dims(output_hidden, 1), {
            "hidden": hidden,
            "cell": cell,
        }

    def _run_convolution(self, inputs, padding_mask, cache=None):
        if cache is not None:
            window = ops.concatenate([cache["inputs"], inputs], axis=1)
            hidden = self.convolution(window[:, : self.kernel_size])
            return hidden, {"inputs": window[:, 1:]}
        if padding_mask is not None:
            inputs = ops.where(ops.expand_dims(padding_mask, -1), inputs, 0.0)
        if self.bidirectional:
            sides = ((self.kernel_size - 1) // 2, self.kernel_size // 2)
        else:
            inputs = inputs[:, :-1] if self.exclusive else inputs
            sides = (self._num_earlier_tokens(), 0)
        return self.convolution(ops.pad(inputs, ((0, 0), sides, (0, 0))))

    def _num_earlier_tokens(self):
        """Returns the number of earlier tokens that the convolution sees."""
        return self.kernel_size - 1 + int(self.exclusive)

    def compute_output_shape(self, inputs_shape):
        is_double = self.role_encoder == "lstm" and self.bidirectional
        return (*inputs_shape[:-1], (1 + int(is_double)) * self.role_units)

    def compute_output_spec(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        mask=None,
    ):
        shape = self.compute_output_shape(inputs.shape)
        output = keras.KerasTensor(shape, dtype=self.compute_dtype)
        return output if cache is None else (output, cache)

    def get_config(self):
        return {
            **super().get_config(),
            "role_units": self.role_units,
            "role_encoder": self.role_encoder,
            "bidirectional": self.bidirectional,
            "kernel_size": self.kernel_size,
            "exclusive": self.exclusive,
        }
