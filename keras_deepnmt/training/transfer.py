"""Starting from another model: copying its weights, freezing some of them."""

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.layers.multi_layer_attention import NEAREST_ATTENTION
from keras_deepnmt.suggestions import nearest_name


def weight_path(model: keras.Model, weight: keras.Variable) -> str:
    """Returns a weight's path without the model's name."""
    return weight.path.removeprefix(f"{model.name}/")


def freeze(model: keras.Model, patterns: Sequence[str]) -> list[str]:
    """Makes all weights whose path matches a pattern non-trainable.

    Call it before `compile`, so that the optimizer has no state for them.
    Saved files hold the values of frozen weights, but not that they are frozen.

    Args:
        model: a built model.
        patterns: paths of weights without the model's name, with the
            wildcards of `fnmatch`; `*` also stands for `/`, so that
            `"encoder*"` is the whole encoder.

    Returns:
        The paths of the frozen weights.

    Raises:
        UserError: if a pattern matches no trainable weight (the nearest path is
            named), or no trainable weight is left.
        ValueError: if the model is compiled already.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> len(freeze(model, ["encoder*", "*/bias"]))
    23
    """
    if model.compiled:
        raise ValueError("`model` must not be compiled yet. Freeze it first.")
    frozen = _matching_weights(model, patterns)
    for weight in frozen.values():
        weight.trainable = False
    return list(frozen)


def trained_weights(
    model: keras.Model, patterns: Sequence[str]
) -> list[keras.Variable]:
    """Returns the weights that train if `patterns` are frozen.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> len(trained_weights(model, ["encoder*", "*/bias"]))
    18
    """
    frozen = {id(w) for w in _matching_weights(model, patterns).values()}
    return [w for w in model.trainable_variables if id(w) not in frozen]


def _matching_weights(model, patterns):
    """Returns the trainable weights that match, by path, in their order."""
    weights = {weight_path(model, w): w for w in model.trainable_variables}
    frozen = {}
    for pattern in patterns:
        matches = fnmatch.filter(weights, pattern)
        if not matches:
            near = nearest_name(pattern, weights, cutoff=0.0)
            raise UserError(
                f"`freeze`: no weight matches {pattern!r}. The nearest is "
                f'"{near}"; a "*" stands for any text.'
            )
        frozen |= dict.fromkeys(matches)
    if len(frozen) == len(weights):
        raise UserError(
            "`freeze` must leave some weights to train. Received: "
            f"{list(patterns)}, which match all {len(weights)}."
        )
    return {path: w for path, w in weights.items() if path in frozen}


@dataclass(frozen=True)
class SharedWeights:
    """Which weights were copied, by path and number of parameters.

    Attributes:
        shared: weights of the target that were copied from the source.
        fresh: all other weights of the target, unchanged.
        unused: weights of the source that were not copied.
        mismatched: weights of the target that are in both models with
            different shapes, with the source's shape and the target's.
        extended: shared weights that have rows for new pieces, with the number
            of these; see `vocabulary_rows`.
    """

    shared: dict[str, int]
    fresh: dict[str, int]
    unused: dict[str, int]
    mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    extended: dict[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        """Returns a line of numbers, and one for each weight of other shape."""
        parts = [
            f"{name} {len(weights):,} weights ({sum(weights.values()):,} "
            "parameters)"
            for name, weights in (
                ("shared", self.shared),
                ("fresh", self.fresh),
                ("unused", self.unused),
            )
        ]
        lines = [", ".join(parts) + "."]
        lines += [
            f"{path} is fresh: its shape is {target} here and {source} there."
            for path, (source, target) in self.mismatched.items()
        ]
        lines += [
            f"{path} has {rows:,} new rows, each the mean of the rows of the "
            "pieces that a new piece was cut into before."
            for path, rows in self.extended.items()
        ]
        return "\n".join(lines)


def copy_shared_weights(
    source: keras.Model, target: keras.Model
) -> SharedWeights:
    """Copies all weights that two models share.

    Dou et al. (2018) initialize their deep models in this way from a trained
    baseline; the new weights keep their own initialization. Two weights are
    shared if they have the same shape and the same path, with two exceptions:
    the attention of a block corresponds to the first one of a
    `layers.MultiLayerAttention`, and one matrix for all embeddings gives its
    values to separate ones.

    Args:
        source: a built model.
        target: a built model, whose weights are replaced.

    Returns:
        A `SharedWeights`: the copied weights and the others.

    Reference:
        - [Dou et al., 2018](https://aclanthology.org/D18-1457/).

    Example:
    >>> shallow = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> deep = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 2, 1)
    >>> report = copy_shared_weights(shallow, deep)
    >>> len(report.shared), len(report.fresh), len(report.unused)
    (41, 15, 0)
    """
    sources = {_part(weight_path(source, w)): w for w in source.weights}
    targets = {weight_path(target, w): w for w in target.weights}
    shared, mismatched, used = {}, {}, set()
    for path, weight in targets.items():
        name = _find_part(path, sources)
        if name is None:
            continue
        shapes = tuple(sources[name].shape), tuple(weight.shape)
        if shapes[0] == shapes[1]:
            weight.assign(keras.ops.convert_to_numpy(sources[name]))
            shared[path] = math.prod(weight.shape)
            used.add(name)
        else:
            mismatched[path] = shapes
    return SharedWeights(
        shared,
        fresh={p: _size(w) for p, w in targets.items() if p not in shared},
        unused={
            weight_path(source, weight): _size(weight)
            for name, weight in sources.items()
            if name not in used
        },
        mismatched=mismatched,
    )


def _part(path):
    """Names a weight by its part of the model, not by its attention layer."""
    return path.replace(f"/attention/{NEAREST_ATTENTION}/", "/attention/")


def _find_part(path, sources):
    """Finds the source's weight for a path of the target, by its part."""
    name = _part(path)
    if name in sources:
        return name
    layer, _, rest = name.partition("/")
    shared = f"shared_embedding/{rest}"
    is_embedding = layer in ("source_embedding", "target_embedding")
    return shared if is_embedding and shared in sources else None


def _size(weight):
    return math.prod(weight.shape)
