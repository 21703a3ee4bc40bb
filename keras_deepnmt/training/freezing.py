"""Weights that stay as they are while the others train."""

import difflib
import fnmatch
from collections.abc import Sequence

import keras

from keras_deepnmt.errors import UserError


def weight_path(model: keras.Model, weight: keras.Variable) -> str:
    """Names a weight inside its model.

    Args:
        model: the model.
        weight: one of its weights.

    Returns:
        The weight's path, without the model's own name.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> weight_path(model, model.weights[0])
    'source_embedding/embeddings'
    """
    return weight.path.removeprefix(f"{model.name}/")


def freeze(model: keras.Model, patterns: Sequence[str]) -> list[str]:
    """Keeps all weights whose path matches a pattern from being trained.

    Call it before `compile`, so that the optimizer holds no state for them.
    Saved files hold frozen weights like the others, but not that they are
    frozen.

    Args:
        model: a built model.
        patterns: paths of weights without the model's name, with the
            wildcards of `fnmatch`; `*` also stands for `/`, so that
            `"encoder*"` is the whole encoder.

    Returns:
        The paths of the frozen weights.

    Raises:
        UserError: if a pattern matches no weight that trains (the nearest path
            is named), or none are left to train.
        ValueError: if the model is compiled already.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> len(freeze(model, ["encoder*", "*/bias"]))
    23
    """
    if model.compiled:
        raise ValueError("`model` must not be compiled yet. Freeze it first.")
    weights = {weight_path(model, w): w for w in model.trainable_variables}
    frozen = {}
    for pattern in patterns:
        found = fnmatch.filter(weights, pattern)
        if not found:
            near = difflib.get_close_matches(pattern, weights, 1, cutoff=0.0)
            raise UserError(
                f"`freeze`: no weight matches {pattern!r}. The nearest is "
                f'"{near[0]}"; a "*" stands for any text.'
            )
        frozen |= dict.fromkeys(found)
    if len(frozen) == len(weights):
        raise UserError(
            "`freeze` must leave some weights to train. Received: "
            f"{list(patterns)}, which match all {len(weights)}."
        )
    for path in frozen:
        weights[path].trainable = False
    return [path for path in weights if path in frozen]
