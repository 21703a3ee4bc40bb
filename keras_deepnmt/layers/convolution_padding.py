"""Zero padding with which a convolution keeps the length of a sentence."""

PADDINGS = ("valid", "same", "causal")


def padding_lengths(kernel_size, padding):
    """Returns how many zeros a convolution needs before and after a sentence.

    Example:
    >>> [padding_lengths(3, padding) for padding in PADDINGS]
    [(0, 0), (1, 1), (2, 0)]
    """
    if padding == "same":
        return (kernel_size - 1) // 2, kernel_size // 2
    return (kernel_size - 1 if padding == "causal" else 0), 0


def check_convolution(kernel_size, padding, paddings=PADDINGS):
    """Raises a `ValueError` if the kernel size or the padding is invalid."""
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
