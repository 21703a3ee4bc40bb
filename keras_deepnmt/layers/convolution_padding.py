"""Zeros around a sentence, so that a convolution keeps its length."""

PADDINGS = ("valid", "same", "causal")


def padded_sides(kernel_size, padding):
    """Counts the zeros that a convolution needs before and after a sentence.

    Args:
        kernel_size: int. Neighbours k that one output sees.
        padding: `"valid"`, `"same"` or `"causal"`.

    Returns:
        Tuple `(before, after)` of int.

    Example:
    >>> [padded_sides(3, padding) for padding in PADDINGS]
    [(0, 0), (1, 1), (2, 0)]
    """
    if padding == "same":
        return (kernel_size - 1) // 2, kernel_size // 2
    return (kernel_size - 1 if padding == "causal" else 0), 0


def check_convolution(kernel_size, padding, paddings=PADDINGS):
    """Refuses what no convolution can be.

    Args:
        kernel_size: int.
        padding: str.
        paddings: tuple of the words that may be its value.

    Raises:
        ValueError: for an unknown padding or a kernel size below 1.

    Example:
    >>> check_convolution(3, "centred")
    Traceback (most recent call last):
    ...
    ValueError: `padding` must be one of valid, same, causal. Received: \
padding='centred'.
    """
    if kernel_size < 1:
        raise ValueError(
            "`kernel_size` must be at least 1. "
            f"Received: kernel_size={kernel_size}."
        )
    if padding not in paddings:
        raise ValueError(
            f"`padding` must be one of {', '.join(paddings)}. "
            f"Received: padding={padding!r}."
        )
