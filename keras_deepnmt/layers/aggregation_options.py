"""Options shared by the layers that are made of aggregation nodes."""

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
    check_positive,
    check_probability,
)

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
    "relative_position",
)


def node_options(layer):
    """Returns what a layer made of nodes passes on to each node."""
    return {
        **{name: getattr(layer, name) for name in NODE_OPTIONS},
        "relative_position": layer.given_position(),
    }


def check_node_options(
    function,
    residual,
    intermediate_dim,
    num_heads,
    dropout,
    attention_dropout,
    layer_norm_epsilon,
):
    """Raises a `ValueError` if an option of an aggregation node is invalid."""
    check_choice("function", function, FUNCTIONS)
    check_choice("residual", residual, RESIDUALS)
    if intermediate_dim is not None:
        check_integer("intermediate_dim", intermediate_dim)
    check_integer("num_heads", num_heads)
    check_probability("dropout", dropout)
    check_probability("attention_dropout", attention_dropout)
    check_positive("layer_norm_epsilon", layer_norm_epsilon)
