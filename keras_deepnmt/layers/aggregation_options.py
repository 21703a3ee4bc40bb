"""Options that the layers made of aggregation nodes have in common."""

FUNCTIONS = ("sigmoid", "relu", "attention")
RESIDUALS = ("all", "top", "none")
# The options that every layer made of nodes hands on to them.
NODE_OPTIONS = (
    "function",
    "residual",
    "intermediate_dim",
    "num_heads",
    "dropout",
    "layer_norm_epsilon",
)


def check_choice(name, value, choices):
    """Refuses an option that is none of the choices.

    Args:
        name: str. Name of the argument.
        value: what was received.
        choices: tuple of what is possible.

    Raises:
        ValueError: if `value` is not in `choices`.

    Example:
    >>> check_choice("function", "relu", FUNCTIONS)
    """
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}."
        )


def check_node_options(function, residual, intermediate_dim, dropout):
    """Refuses options that no aggregation node can have.

    Args:
        function: what is applied to all inputs together.
        residual: which inputs are added to that.
        intermediate_dim: int or `None`. Width of the feed-forward network.
        dropout: float. Probability of dropping an activation.

    Raises:
        ValueError: if one of them is not possible.

    Example:
    >>> check_node_options("relu", "top", None, 0.1)
    """
    check_choice("function", function, FUNCTIONS)
    check_choice("residual", residual, RESIDUALS)
    if intermediate_dim is not None and intermediate_dim < 1:
        raise ValueError(
            "`intermediate_dim` must be at least 1, or None for 4 D. "
            f"Received: intermediate_dim={intermediate_dim}."
        )
    if not 0.0 <= dropout < 1.0:
        raise ValueError(
            f"`dropout` must lie in [0, 1). Received: dropout={dropout}."
        )


def common_shape(name, shapes):
    """Gives the shape that all tensors of a list have.

    Args:
        name: str. Name of the argument that holds the list.
        shapes: list of shapes.

    Returns:
        The first shape, a tuple.

    Raises:
        ValueError: if `shapes` is no list of shapes, or the widths differ.

    Example:
    >>> common_shape("inputs", [[None, 5, 7], [None, 5, 7]])
    (None, 5, 7)
    """
    if not shapes or not isinstance(shapes[0], list | tuple):
        raise ValueError(
            f"`{name}` must be a list of tensors with at least one entry. "
            f"Received: {name} of shape {shapes}."
        )
    widths = [shape[-1] for shape in shapes]
    if len(set(widths)) > 1:
        raise ValueError(
            f"All `{name}` must have the same width. Received: widths={widths}."
        )
    return tuple(shapes[0])
