"""Presets' numbers of parameters, and the plain models they stand beside."""


def count_parameters(name, vocabulary_sizes, **arguments):
    """Counts the numbers of one preset without making any.

    Args:
        name: str.
        vocabulary_sizes: two ints, of source and target.
        **arguments: of the model, which replace the preset's.

    Returns:
        Int.
    """
    import tensorflow as tf

    from keras_deepnmt.zoo import create_model

    # In a graph a variable has a shape and, until it runs, no value.
    with tf.Graph().as_default():
        model = create_model(name, *vocabulary_sizes, **arguments)
    return model.count_params()


class Counter:
    """Counts presets' numbers, those of one model once.

    Args:
        overrides: dict of arguments that replace the presets'.
    """

    def __init__(self, overrides):
        self._overrides = overrides
        self._found = {}

    def __call__(self, name, **slots):
        """Counts the numbers of one preset, with other slots if any."""
        from keras_deepnmt.zoo.registry import get_preset

        sizes = [vocabulary_size(name)] * 2
        # Many presets are one model once their slots are empty.
        arguments = get_preset(name).arguments(*sizes, **slots)
        key = repr((sizes, sorted(arguments.items()))) if slots else name
        if key not in self._found:
            self._found[key] = count_parameters(
                name, sizes, **self._overrides, **slots
            )
        return self._found[key]


def vocabulary_size(name):
    """Gives the vocabulary with which a preset is measured or counted."""
    return 8_000 if is_measured(name) else 32_000


def is_measured(name):
    """Says whether a preset is small enough to be timed."""
    return "_tiny" in name


def timed_beside(name):
    """Names the plain model that a tiny preset is timed beside."""
    return (
        "conv_seq2seq_tiny" if _is_convolutional(name) else "transformer_tiny"
    )


def plain_of(name):
    """Gives the plain model of a preset's backbone and size.

    Returns:
        Tuple of a preset's name and a dict of overrides: a Transformer's slots
        are left empty; of convolutional models the residual one is plain.
    """
    from keras_deepnmt.models.transformer_layers import SLOTS
    from keras_deepnmt.zoo.registry import get_preset

    if _is_convolutional(name):
        size = name.removeprefix(get_preset(name).variant)
        return f"conv_seq2seq{size}", {}
    if name.endswith("_matched"):
        # Wider than what it is compared with, which the roles widened.
        size = name.split("_")[1]
        name = f"role_interaction_dense_{size}"
    return name, dict.fromkeys(SLOTS)


def _is_convolutional(name):
    from keras_deepnmt.models import ConvSeq2Seq
    from keras_deepnmt.zoo.registry import get_preset

    return get_preset(name).model is ConvSeq2Seq
