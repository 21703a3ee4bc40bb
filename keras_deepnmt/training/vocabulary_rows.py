"""Starts a model with a larger vocabulary from the weights of another one."""

import dataclasses
import math
from collections.abc import Sequence

import keras
import numpy as np

from keras_deepnmt.layers.weight_normalization import normalize_weights
from keras_deepnmt.training.transfer import (
    SharedWeights,
    copy_shared_weights,
    weight_path,
)


def copy_to_larger_vocabulary(
    source: keras.Model,
    target: keras.Model,
    source_parts: Sequence[np.ndarray],
    target_parts: Sequence[np.ndarray],
) -> SharedWeights:
    """Copies all weights that two models share, and makes rows of new pieces.

    The rows of old pieces are copied. The row of a new piece, in embeddings and
    in the output projection with its bias, is the mean of the rows of its
    parts, so that its logit is the mean of their logits.

    Both models are built; the vocabularies of `target` are as large or larger.
    The parts are, for each new piece of a side, the old ids that it was cut
    into before; with one matrix for both sides they are equal. Extended weights
    are counted as shared.
    """
    report = copy_shared_weights(source, target)
    theirs = {weight_path(source, w): _array(w) for w in source.weights}
    ours = {weight_path(target, w): w for w in target.weights}
    extended = {}
    for path, (before, after) in report.mismatched.items():
        parts = _parts_of(path, source_parts, target_parts)
        axis = _vocabulary_axis(before, after, len(parts))
        if axis is None or path not in theirs:
            continue
        rows = np.moveaxis(theirs[path], axis, 0)
        rows = np.concatenate([rows, _new_rows(path, axis, theirs, parts)])
        ours[path].assign(np.moveaxis(rows, 0, axis))
        extended[path] = len(parts)
    sizes = {path: math.prod(ours[path].shape) for path in extended}
    return dataclasses.replace(
        report,
        shared=report.shared | sizes,
        fresh=_without(report.fresh, extended),
        unused=_without(report.unused, extended),
        mismatched=_without(report.mismatched, extended),
        extended=extended,
    )


def _parts_of(path, source_parts, target_parts):
    """Returns the parts of the pieces that a weight has rows for."""
    is_source = path.startswith("source_embedding/")
    return source_parts if is_source else target_parts


def _vocabulary_axis(before, after, number):
    """Returns the axis that has grown by a number, if no other has changed."""
    if len(before) != len(after):
        return None
    grown = [
        (axis, new - old)
        for axis, (old, new) in enumerate(zip(before, after, strict=True))
        if new != old
    ]
    return grown[0][0] if len(grown) == 1 and grown[0][1] == number else None


def _new_rows(path, axis, weights, parts):
    layer, _, name = path.rpartition("/")
    rows = np.moveaxis(weights[path], axis, 0)
    if name in ("direction", "gain"):  # of `WeightNormalizedDense`
        kernel = normalize_weights(
            weights[f"{layer}/direction"], weights[f"{layer}/gain"]
        )
        rows = keras.ops.convert_to_numpy(kernel).T
    means = np.stack([rows[ids].mean(axis=0) for ids in parts])
    return np.linalg.norm(means, axis=1) if name == "gain" else means


def _array(weight):
    return keras.ops.convert_to_numpy(weight)


def _without(weights, paths):
    return {path: one for path, one in weights.items() if path not in paths}
