"""How wide each layer of a dense stack is (Shen et al., 2018, Section 3.3)."""


def stack_widths(hidden_dims, growths, summary_interval=None, num_outputs=1):
    """Counts the channels that each layer of a dense stack reads.

    A layer adds its outputs to all that it has read; every
    `summary_interval`-th one, a summary, replaces them.

    Args:
        hidden_dims: list of int. For each layer the width n that it has as a
            summary; the stack starts with the first.
        growths: list of int. For each layer the width a of each output that it
            has otherwise.
        summary_interval: int. Layers from one summary to the next, the paper's
            sumlen. Defaults to no summaries.
        num_outputs: int. Outputs that a layer adds: 1 in an encoder, 2 in a
            decoder, whose layers have an attention.

    Returns:
        Tuple `(widths, output_width)`: a list of int, what each layer reads,
        and what the stack gives.

    Raises:
        ValueError: for lists of different lengths or none, or an interval or a
            number of outputs below 1.

    Example:
    >>> stack_widths([256] * 4, [128] * 4)
    ([256, 384, 512, 640], 768)
    """
    _check(hidden_dims, growths, summary_interval)
    if num_outputs < 1:
        raise ValueError(
            "`num_outputs` must be at least 1. "
            f"Received: num_outputs={num_outputs}."
        )
    widths, width = [], hidden_dims[0]
    for number, (hidden_dim, growth) in enumerate(
        zip(hidden_dims, growths, strict=True), 1
    ):
        widths.append(width)
        if is_summary(number, summary_interval):
            width = hidden_dim
        else:
            width += num_outputs * growth
    return widths, width


def slice_widths(hidden_dims, growths, summary_interval=None):
    """Lists the states that an encoder's dense stack ends with.

    They are what DenseAtt-2 attends to, each on its own: the outputs of the
    layers since the last summary, and that summary, or the stack's input.

    Args:
        hidden_dims, growths, summary_interval: as in `stack_widths`.

    Returns:
        List of int, the widths, the newest first. They sum to what the stack
        gives.

    Raises:
        ValueError: as `stack_widths`.

    Example:
    >>> slice_widths([192] * 8, [96] * 8, summary_interval=6)
    [96, 96, 192]
    """
    _check(hidden_dims, growths, summary_interval)
    slices = [hidden_dims[0]]
    for number, (hidden_dim, growth) in enumerate(
        zip(hidden_dims, growths, strict=True), 1
    ):
        if is_summary(number, summary_interval):
            slices = [hidden_dim]
        else:
            slices = [growth, *slices]
    return slices


def is_summary(number, summary_interval=None):
    """Tells whether a layer of a dense stack is a summary.

    Args:
        number: int. The layer's number, from 1.
        summary_interval: int. Layers from one summary to the next. Defaults to
            no summaries.

    Returns:
        Bool.

    Example:
    >>> [number for number in range(1, 16) if is_summary(number, 6)]
    [6, 12]
    """
    return summary_interval is not None and number % summary_interval == 0


def _check(hidden_dims, growths, summary_interval):
    if not hidden_dims or len(hidden_dims) != len(growths):
        raise ValueError(
            "`hidden_dims` and `growths` must have an entry for each layer. "
            f"Received: hidden_dims={hidden_dims}, growths={growths}."
        )
    if summary_interval is not None and summary_interval < 1:
        raise ValueError(
            "`summary_interval` must be at least 1, or None for no summaries. "
            f"Received: summary_interval={summary_interval}."
        )
