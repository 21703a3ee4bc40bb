"""Parameter counts of presets, and the plain models to compare them with."""


def count_parameters(name, vocabulary_sizes, **arguments):
    """Counts the parameters of a preset without allocating its weights.

    `vocabulary_sizes` are those of source and target; `arguments` override the
    preset's arguments.
    """
    import tensorflow as tf

    from keras_deepnmt.zoo import create_model

    # In a graph that is not run, variables have a shape but no value.
    with tf.Graph().as_default():
        model = create_model(name, *vocabulary_sizes, **arguments)
    return model.count_params()


class ParameterCounter:
    """Counts the parameters of presets, each distinct model only once.

    `overrides` are arguments that override those of every preset.
    """

    def __init__(self, overrides):
        self._overrides = overrides
        self._counts = {}

    def __call__(self, name, **slots):
        """Counts the parameters of a preset; `slots` override its slots."""
        from keras_deepnmt.zoo.registry import get_preset

        sizes = [vocabulary_size(name)] * 2
        # With empty slots, many presets are the same model.
        arguments = get_preset(name).arguments(*sizes, **slots)
        key = repr((sizes, sorted(arguments.items()))) if slots else name
        if key not in self._counts:
            self._counts[key] = count_parameters(
                name, sizes, **self._overrides, **slots
            )
        return self._counts[key]


def vocabulary_size(name):
    """Returns the vocabulary size for measuring or counting a preset."""
    return 8_000 if is_measured(name) else 32_000


def is_measured(name):
    """Returns whether a preset is small enough to be timed."""
    return "_tiny" in name


def timing_baseline(name):
    """Returns the plain model with which a tiny preset is compared in time."""
    return (
        "conv_seq2seq_tiny" if _is_convolutional(name) else "transformer_tiny"
    )


def plain_model_of(name):
    """Returns the plain model of a preset's backbone and size.

    Returns a preset's name and a dict of overrides: a plain Transformer has
    empty slots and sinusoids; the plain convolutional model is the residual
    one.
    """
    from keras_deepnmt.models.transformer_layers import SLOTS
    from keras_deepnmt.zoo.registry import get_preset

    if _is_convolutional(name):
        size = name.removeprefix(get_preset(name).variant)
        return f"conv_seq2seq{size}", {}
    if name.endswith("_matched"):
        # This plain model is wider, so that it has as many parameters as the
        # model with roles; it is compared with that one's plain model.
        size = name.split("_")[1]
        name = f"role_interaction_dense_{size}"
    return name, dict.fromkeys(SLOTS) | {"position_encoding": "sinusoidal"}


def _is_convolutional(name):
    from keras_deepnmt.models import ConvSeq2Seq
    from keras_deepnmt.zoo.registry import get_preset

    return get_preset(name).model is ConvSeq2Seq
