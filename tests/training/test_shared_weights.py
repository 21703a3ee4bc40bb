"""What must be true of weights taken over from another model.

* those with the same path and shape become equal, all others stay
* the report counts every weight of both models once
"""

import numpy as np

from keras_deepnmt.models import Transformer
from keras_deepnmt.training.transfer import copy_shared_weights

H = 8


def values(model):
    return {w.path: w.numpy() for w in model.weights}


def test_same_paths_and_shapes_are_shared_and_the_rest_stays():
    source = Transformer(11, 13, H, 16, 2, 1, 2)
    target = Transformer(11, 17, H, 16, 2, 2, 1)
    theirs, before = values(source), values(target)
    # A bias begins at zero in both: equal by chance, were it not changed.
    for weight in source.weights:
        weight.assign_add(np.ones(weight.shape, "float32"))
    theirs = values(source)
    report = copy_shared_weights(source, target)
    table = "target_embedding/embeddings"
    for path, value in values(target).items():
        shared = path in theirs and path != table
        expected = theirs[path] if shared else before[path]
        np.testing.assert_array_equal(value, expected, err_msg=path)
        assert (path in report.shared) == shared
        assert (path in report.fresh) == (not shared)
    assert report.mismatched == {table: ((13, H), (17, H))}
    assert sum(report.shared.values()) + sum(report.fresh.values()) == (
        target.count_params()
    )
    assert sum(report.shared.values()) + sum(report.unused.values()) == (
        source.count_params()
    )


def test_the_report_names_numbers_and_shapes():
    source = Transformer(11, 13, H, 16, 2, 1, 1)
    target = Transformer(11, 17, H, 16, 2, 1, 1)
    said = copy_shared_weights(source, target).describe()
    assert "fresh 1 weights (136 parameters), unused 1 weights (104" in said
    assert "target_embedding/embeddings is fresh: its shape is (17, 8)" in said
