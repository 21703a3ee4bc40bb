"""The convolutional cases of `layer_speed.py`."""

from benchmarks.speed.measuring.layer_case import Call, Case


def conv_cases():
    """Single layers, and dense presets compared with the residual one."""
    yield from layer_cases()
    yield from preset_cases()


def layer_cases():
    """Layers of dense stacks, compared with those of residual stacks."""
    yield Case(
        "GatedConvolution",
        "fourth of a dense stack, 2.5 n to n / 2",
        "residual, n to n",
        "call",
        convolution(2.5, 0.5),
        convolution(1, 1),
    )
    yield Case(
        "GatedConvolution",
        "n to n",
        "Conv1D of as many channels",
        "call",
        convolution(1, 1),
        keras_convolution,
    )
    yield Case(
        "MultiStepAttention",
        "5 pairs of keys and values",
        "1 pair",
        "call",
        attention(5),
        attention(1),
    )
    yield Case(
        "SummaryLayer",
        "3.5 n to n",
        "residual connection",
        "call",
        summary(3.5),
        summary(1, use_projection=False),
    )


def preset_cases():
    """Whole dense models, compared with the residual one of the same size."""
    for size in ("tiny", "4l"):
        # The same function object for both, so that it is compiled once.
        plain = preset(f"conv_seq2seq_{size}")
        for variant in (1, 2):
            yield Case(
                "ConvSeq2Seq",
                f"dense_nmt_{variant}_{size}",
                f"conv_seq2seq_{size}",
                "preset",
                preset(f"dense_nmt_{variant}_{size}"),
                plain,
            )


def preset(name):
    """Returns a function of the sizes that returns a preset's name."""
    return lambda sizes: name


def convolution(width, filters):
    """Returns a function of the sizes that creates a gated convolution.

    `width` and `filters` are the widths of input and output, in multiples of n.
    """

    def make(sizes):
        from keras_deepnmt.layers import GatedConvolution

        hidden = sizes["hidden_dim"]
        layer = GatedConvolution(round(filters * hidden))
        return Call(layer, [_shape(sizes, round(width * hidden))])

    return make


def keras_convolution(sizes):
    """Creates Keras' convolution, without gates or weight normalization."""
    import keras

    hidden = sizes["hidden_dim"]
    layer = keras.layers.Conv1D(2 * hidden, 3, padding="same")
    return Call(layer, [_shape(sizes, hidden)])


def attention(num_pairs):
    """Returns a function of the sizes that creates a multi-step attention."""

    def make(sizes):
        from keras_deepnmt.layers import MultiStepAttention

        states = _shape(sizes, sizes["hidden_dim"])
        memory = (states[0], num_pairs, *states[1:])
        return Call(MultiStepAttention(), [states, states, memory, memory])

    return make


def summary(width, **options):
    """Returns a function of the sizes that creates a summary layer.

    `width` is the width of the input, in multiples of n; `options` are the
    layer's arguments.
    """

    def make(sizes):
        from keras_deepnmt.layers import SummaryLayer

        hidden = sizes["hidden_dim"]
        return Call(
            SummaryLayer(hidden, **options),
            [_shape(sizes, round(width * hidden)), _shape(sizes, hidden)],
            lambda layer, old, new: layer(old, [new]),
        )

    return make


def _shape(sizes, width):
    return sizes["batch_size"], sizes["length"], width
