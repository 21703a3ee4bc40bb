"""Options shared by the layers that are made of aggregation nodes."""

FUNCTIONS = ("sigmoid", "relu", "attention")
RESIDUALS = ("all", "top", "none")
# Constructor arguments that a layer made of nodes passes on to each node.
NODE_OPTIONS = (
    "function",
    "residual",
    "intermediate_dim",
    "num_heads",
    "dropout",
    "layer_norm_epsilon",
    "attention_dropout",
    "attention_initializer",
)


def check_choice(name, value, choices):
    """Raises a `ValueError` if `value` is not one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}."
        )


def check_node_options(function, residual, intermediate_dim, dropout):
    """Raises a `ValueError` if an option of an aggregation node is invalid."""
    check_choice("function", function, FUNCTIONS)
    check_choice("residual", residual, RESIDUALS)
    if intermediate_dim is not None and intermediate_dim < 1:
        raise ValueError(
            "`intermediate_dim` must be at least 1, or None for 4 times the "
            "width of the states. "
            f"Received: intermediate_dim={intermediate_dim}."
        )
    if not 0.0 <= dropout < 1.0:
        raise ValueError(
            f"`dropout` must lie in [0, 1). Received: dropout={dropout}."
        )


def common_shape(name, shapes):
    """Returns the first of several shapes that must have the same width.

    Raises a `ValueError` about the argument `name` if `shapes` is not a list
    of shapes, or if their widths differ.
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
