"""Plain Transformers with the parameter counts of Weissenborn et al. (2019).

The paper's "matched" baselines have no roles, but are wider, so that they have
about the same number of parameters as `role_interaction_dense` of that size.
"""

from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.matched_baseline import (
    count_parameters,
    matched_dimensions,
)
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.role_interaction import ALL_SIZES, NUM_ROLES, PAPER


def count_role_parameters(hidden_dim, num_roles, num_directions):
    """Counts the parameters of a dense `layers.RoleInteraction`.

    `num_directions` of the LSTM is 2 on the source side, 1 on the target side.
    """
    lstm = 4 * num_roles * (hidden_dim + num_roles + 1)
    assignment = (num_directions * num_roles + 1) * num_roles
    return num_directions * lstm + assignment + num_roles * hidden_dim**2


def _matched(arguments_of):
    def arguments(*vocabulary_sizes):
        plain = dict(arguments_of(*vocabulary_sizes))
        dropout = plain.pop("dropout")
        num_parameters = count_parameters(*vocabulary_sizes, **plain) + sum(
            count_role_parameters(plain["hidden_dim"], NUM_ROLES, directions)
            for directions in (1, 2)
        )
        wider = matched_dimensions(num_parameters, *vocabulary_sizes, **plain)
        return {**plain, **wider, "dropout": dropout}

    return arguments


SIZES = {
    f"{size}_matched": _matched(arguments_of)
    for size, arguments_of in ALL_SIZES.items()
}


@register_variant(Transformer, SIZES, PAPER)
def transformer(arguments):
    """The plain Transformer, widened to the parameter count with roles."""
    return {}
