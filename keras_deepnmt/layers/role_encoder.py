"""What a token's roles are told from (Weissenborn et al., 2019, Eq. 4)."""

import keras
from keras import ops

ROLE_ENCODERS = ("lstm", "cnn")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class RoleEncoder(keras.layers.Layer):
    """Reads the tokens around each token with a small network.

    Roles need little of a sentence: whether a verb came before, what kind of
    word comes next. A narrow LSTM carries that, in both directions over a
    source, in one over a target, which is written token by token; a
    convolution sees a few neighbours.

    It computes (Weissenborn et al., 2019, Eq. 4 and Section 4, "+CNN"):

        hidden = BiLSTM(e), LSTM(e) or ReLU(convolution(e))

    Here `hidden` is the paper's r with a hat.
    Differs from the paper: nothing that it states. It leaves open the width,
    and the activation of the convolution.
    Cost: each direction of the LSTM has `4 (D U + U^2 + U)` parameters, the
    convolution `kernel_size D U + U`.

    Args:
        role_units: int. Units U, of each direction.
        role_encoder: `"lstm"` or `"cnn"`.
        bidirectional: bool. Whether later tokens are read too. Step by step
            they are not known.
        kernel_size: int. Tokens that the convolution sees.
        exclusive: bool. Whether a token is told from earlier ones alone, and
            not from itself; not with `bidirectional`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, S, D)`; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. Defaults to
            all real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Not needed: the cache is the past.

    Returns:
        Float tensor `(B, S, U)`, from an LSTM in both directions `(B, S, 2 U)`;
        then the new cache iff one was passed.

    Raises:
        ValueError: for an unknown role encoder, or `exclusive` with
            `bidirectional`.

    Masking: consumes `padding_mask`: the backward direction begins at the last
    real token. What padding gives means nothing.

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
        if role_encoder not in ROLE_ENCODERS:
            raise ValueError(
                f"`role_encoder` must be one of {', '.join(ROLE_ENCODERS)}. "
                f"Received: role_encoder={role_encoder!r}."
            )
        if exclusive and bidirectional:
            raise ValueError(
                "`exclusive` means from earlier tokens alone. Received: "
                "exclusive=True, bidirectional=True. Pass bidirectional=False."
            )
        super().__init__(**kwargs)
        self.role_units = role_units
        self.role_encoder = role_encoder
        self.bidirectional = bidirectional
        self.kernel_size = kernel_size
        self.exclusive = exclusive

    def build(self, inputs_shape):
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
            # Of any length: padding is added to the sentence.
            self.convolution.build((None, None, self.width))
            return
        lstm = keras.layers.LSTM(
            self.role_units,
            return_sequences=True,
            # cuDNN can be neither compiled by XLA nor exported, and refuses
            # rows of padding alone, which fill up batches.
            use_cudnn=False,
            name="lstm",
            dtype=self.dtype_policy,
        )
        if self.bidirectional:
            lstm = keras.layers.Bidirectional(
                lstm, name="bidirectional", dtype=self.dtype_policy
            )
        self.lstm = lstm
        self.lstm.build(inputs_shape)

    def call(self, inputs, padding_mask=None, cache=None, cache_index=None):
        read = self._convolve if self.role_encoder == "cnn" else self._recur
        if cache is not None:
            return read(inputs, padding_mask, cache)
        return read(inputs, padding_mask)

    def init_cache(self, batch_size, max_length):
        """Makes the cache of a sentence's beginning.

        Args:
            batch_size: int or scalar tensor. Rows B*K.
            max_length: int or scalar tensor. Not needed.

        Returns:
            Dict of zeros: `{"hidden", "cell"}` of an LSTM, each `(B*K, U)`;
            `{"inputs"}` of a convolution, the last tokens that it sees.

        Raises:
            ValueError: if later tokens are read.
        """
        if self.bidirectional:
            raise ValueError(
                "Step by step, later tokens cannot be read. Received: "
                "bidirectional=True. Pass bidirectional=False."
            )
        if self.role_encoder == "cnn":
            shape = (batch_size, self._num_before(), self.width)
            return {"inputs": ops.zeros(shape, dtype=self.compute_dtype)}
        zeros = ops.zeros(
            (batch_size, self.role_units), dtype=self.compute_dtype
        )
        return {"hidden": zeros, "cell": zeros}

    def _recur(self, inputs, padding_mask, cache=None):
        if cache is None:
            hidden = self.lstm(inputs, mask=padding_mask)
            if self.exclusive:
                hidden = ops.pad(hidden[:, :-1], ((0, 0), (1, 0), (0, 0)))
            return hidden
        before = cache["hidden"]
        # The cell alone: a loop over one step would cost more than the step.
        hidden, (_, cell) = self.lstm.cell(
            inputs[:, 0], [before, cache["cell"]]
        )
        told = before if self.exclusive else hidden
        return told[:, None], {"hidden": hidden, "cell": cell}

    def _convolve(self, inputs, padding_mask, cache=None):
        if cache is not None:
            seen = ops.concatenate([cache["inputs"], inputs], axis=1)
            hidden = self.convolution(seen[:, : self.kernel_size])
            return hidden, {"inputs": seen[:, 1:]}
        if self.bidirectional:
            if padding_mask is not None:
                inputs = ops.where(padding_mask[..., None], inputs, 0.0)
            sides = ((self.kernel_size - 1) // 2, self.kernel_size // 2)
        else:
            inputs = inputs[:, :-1] if self.exclusive else inputs
            sides = (self._num_before(), 0)
        return self.convolution(ops.pad(inputs, ((0, 0), sides, (0, 0))))

    def _num_before(self):
        """Earlier tokens that the convolution may read at a step."""
        return self.kernel_size - 1 + int(self.exclusive)

    def compute_output_spec(
        self, inputs, padding_mask=None, cache=None, cache_index=None
    ):
        is_double = self.role_encoder == "lstm" and self.bidirectional
        units = (1 + int(is_double)) * self.role_units
        shape = (*inputs.shape[:-1], units)
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
