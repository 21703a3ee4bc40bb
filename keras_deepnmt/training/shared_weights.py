"""Weights that a model takes over from another one."""

import math
from dataclasses import dataclass

import keras

from keras_deepnmt.training.freezing import weight_path


@dataclass(frozen=True)
class SharedWeights:
    """Which weights a model took over, by path and number of parameters.

    Attributes:
        shared: weights of both models, now equal.
        fresh: all other weights of the target, as they were.
        unused: all other weights of the source.
        mismatched: those of both models whose shapes differ: the source's
            shape and the target's.
    """

    shared: dict[str, int]
    fresh: dict[str, int]
    unused: dict[str, int]
    mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]

    def describe(self) -> str:
        """Tells it to a person.

        Returns:
            One line of numbers, and a line for each weight whose shapes differ.
        """
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
        return "\n".join(lines)


def copy_shared_weights(
    source: keras.Model, target: keras.Model
) -> SharedWeights:
    """Copies all weights that have the same path and shape in two models.

    So the deep models of Dou et al. (2018) begin with the weights of their
    trained baseline, and what is new in them with its own initialiser.

    Args:
        source: a built model.
        target: a built model, whose weights are replaced.

    Returns:
        What was copied and what was not.

    Reference:
        - [Dou et al., 2018](https://aclanthology.org/D18-1457/).

    Example:
    >>> shallow = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> deep = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 2, 1)
    >>> report = copy_shared_weights(shallow, deep)
    >>> len(report.shared), len(report.fresh), len(report.unused)
    (41, 15, 0)
    """
    sources = {weight_path(source, w): w for w in source.weights}
    targets = {weight_path(target, w): w for w in target.weights}
    shared, mismatched = {}, {}
    for path, weight in targets.items():
        if path not in sources:
            continue
        shapes = tuple(sources[path].shape), tuple(weight.shape)
        if shapes[0] == shapes[1]:
            weight.assign(keras.ops.convert_to_numpy(sources[path]))
            shared[path] = math.prod(weight.shape)
        else:
            mismatched[path] = shapes
    return SharedWeights(
        shared,
        fresh=_sizes(targets, shared),
        unused=_sizes(sources, shared),
        mismatched=mismatched,
    )


def _sizes(weights, shared):
    return {
        path: math.prod(weight.shape)
        for path, weight in weights.items()
        if path not in shared
    }
