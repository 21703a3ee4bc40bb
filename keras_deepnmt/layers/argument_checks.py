"""Checks of the arguments of layers, with one wording for each rule."""

from numbers import Integral, Real

import keras

_MOST_LAYERS = 1_000


def check_choice(name, value, choices):
    """Raises a `ValueError` if `value` is not one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}."
        )


def check_probability(name, value):
    """Raises a `ValueError` if a dropout probability is outside [0, 1)."""
    if not _is_number(value) or not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` must lie in [0, 1). Received: {name}={value!r}."
        )


def check_integer(name, value, minimum=1):
    """Raises a `ValueError` unless `value` is an integer >= `minimum`."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < minimum:
        raise ValueError(
            f"`{name}` must be an integer of at least {minimum}. "
            f"Received: {name}={value!r}."
        )


def check_num_layers(arguments):
    """Raises a `ValueError` for stacks too deep to be built.

    The numbers may come from the file of a stranger.
    """
    for name in ("num_encoder_layers", "num_decoder_layers"):
        if arguments[name] > _MOST_LAYERS:
            raise ValueError(
                f"`{name}` must be at most {_MOST_LAYERS:,}. "
                f"Received: {name}={arguments[name]}."
            )


def check_number(name, value):
    """Raises a `ValueError` unless `value` is a real number."""
    if not _is_number(value):
        raise ValueError(
            f"`{name}` must be a number. Received: {name}={value!r}."
        )


def check_minimum(name, value, minimum):
    """Raises a `ValueError` unless `value` is a number >= `minimum`."""
    if not _is_number(value) or not value >= minimum:
        raise ValueError(
            f"`{name}` must be a number of at least {minimum}. "
            f"Received: {name}={value!r}."
        )


def check_positive(name, value):
    """Raises a `ValueError` unless `value` is a number above 0."""
    if not _is_number(value) or not value > 0:
        raise ValueError(
            f"`{name}` must be a number above 0. Received: {name}={value!r}."
        )


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


def check_mask(name, mask, shape, broadcasts=False):
    """Raises a `ValueError` if a mask has another shape than `shape`.

    A size that is not known, `None`, fits every other one. With `broadcasts`
    the mask may have axes of size 1, or no axis for the batch. `mask` may be
    `None`.
    """
    if mask is None or has_unknown_rank(mask):
        return
    if "float" in keras.backend.standardize_dtype(mask.dtype):
        raise ValueError(
            f"`{name}` must be a boolean tensor, `True` = may be read. "
            f"Received: {name} of dtype "
            f"{keras.backend.standardize_dtype(mask.dtype)}. Pass "
            "`mask > 0`, or for a mask that is added to logits `mask == 0`."
        )
    found = tuple(mask.shape)
    sizes = found
    if broadcasts and len(found) == len(shape) - 1:
        sizes = (1, *found)
    if not _fits(sizes, shape) and not (
        broadcasts
        and len(sizes) == len(shape)
        and all(
            size == 1 or _fits((size,), (wanted,))
            for size, wanted in zip(sizes, shape, strict=True)
        )
    ):
        rule = "that broadcasts to" if broadcasts else "of"
        raise ValueError(
            f"`{name}` must be a boolean tensor {rule} shape "
            f"{_written(shape)}. Received: {name} of shape {_written(found)}."
        )


def check_alike(name, tensors, other_name, other, num_axes=2):
    """Raises a `ValueError` if tensors differ from another one in shape.

    They would else be broadcast without a word. Only the first axes are
    compared: by default batch and length. Sizes that are not known fit.
    """
    if other is None or has_unknown_rank(other):
        return
    wanted = tuple(other.shape)[:num_axes]
    for tensor in tensors:
        if tensor is None or has_unknown_rank(tensor):
            continue
        found = tuple(tensor.shape)[:num_axes]
        if not _fits(found, wanted):
            axes = ("batch", "length", "width")[:num_axes]
            raise ValueError(
                f"`{name}` must have the {' and '.join(axes)} of "
                f"`{other_name}`, {_written(wanted)}. Received: {name} of "
                f"shape {_written(tensor.shape)}."
            )


def has_unknown_rank(tensor):
    """Whether not even the number of axes of a TensorFlow tensor is known."""
    return getattr(tensor.shape, "rank", 0) is None


def _fits(found, wanted):
    return len(found) == len(wanted) and all(
        None in pair or pair[0] == pair[1]
        for pair in zip(found, wanted, strict=True)
    )


def _written(shape):
    return str(tuple(shape)).replace("None", "any")


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


def list_of_shapes(shape):
    """Returns the shapes of a list of tensors; one tensor is a list of one."""
    return shape if _is_list_of_shapes(shape) else [shape]


def _is_list_of_shapes(shape):
    # The shape of one tensor may be a list, too, if it was read from a file;
    # TensorFlow has shapes of its own class.
    return bool(shape) and not isinstance(shape[0], Integral | None)
