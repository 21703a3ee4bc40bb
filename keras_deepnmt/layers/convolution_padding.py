"""Zero padding with which a convolution keeps the length of a sentence."""

PADDINGS = ("valid", "same", "causal")


def padding_lengths(kernel_size, padding):
    """Returns how many zeros a convolution needs before and after its input."""
    if padding == "same":
        return (kernel_size - 1) // 2, kernel_size // 2
    return (kernel_size - 1 if padding == "causal" else 0), 0
