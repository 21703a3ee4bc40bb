"""Checks of the arguments of layers, with one wording for each rule."""

from numbers import Integral


def check_choice(name, value, choices):
    """Raises a `ValueError` if `value` is not one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}."
        )


def check_probability(name, value):
    """Raises a `ValueError` if a dropout probability is outside [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` must lie in [0, 1). Received: {name}={value}."
        )


def check_integer(name, value, minimum=1):
    """Raises a `ValueError` unless `value` is an integer >= `minimum`."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < minimum:
        raise ValueError(
            f"`{name}` must be an integer of at least {minimum}. "
            f"Received: {name}={value!r}."
        )


def check_sequence(name, shape):
    """Raises a `ValueError` if `shape` is not that of sequences of vectors."""
    if _is_list_of_shapes(shape):
        raise ValueError(
            f"`{name}` must be one float tensor of shape (batch, length, "
            f"width). Received: a list of {len(shape)} tensors."
        )
    if len(shape) != 3:
        advice = (
            " Token ids must first be looked up in an embedding table, such "
            "as that of `keras.layers.Embedding`."
        )
        raise ValueError(
            f"`{name}` must be a float tensor of shape (batch, length, width). "
            f"Received: {name} of shape {tuple(shape)}."
            f"{advice if len(shape) == 2 else ''}"
        )


def check_states(name, shapes, minimum=1):
    """Raises a `ValueError` if `shapes` are not those of a list of states."""
    if not _is_list_of_shapes(shapes) or len(shapes) < minimum:
        if not shapes or _is_list_of_shapes(shapes):
            received = f"a list of {len(shapes or ())}"
        else:
            received = f"one tensor of shape {tuple(shapes)}"
        states = "state" if minimum == 1 else "states"
        raise ValueError(
            f"`{name}` must be a list of at least {minimum} {states}, which "
            "are float tensors of shape (batch, length, width). "
            f"Received: {received}."
        )
    for shape in shapes:
        check_sequence(name, shape)


def common_shape(name, shapes, minimum=1):
    """Returns the shape of the first of several states of equal width.

    Raises a `ValueError` about the argument `name` if `shapes` are not those
    of a list of states, or if their widths differ.
    """
    check_states(name, shapes, minimum)
    widths = [shape[-1] for shape in shapes]
    if len(set(widths)) > 1:
        raise ValueError(
            f"All `{name}` must have the same width. Received: widths={widths}."
        )
    return tuple(shapes[0])


def _is_list_of_shapes(shape):
    # The shape of one tensor may be a list, too, if it was read from a file.
    return bool(shape) and isinstance(shape[0], list | tuple)
