"""What must be true of the limit on compilations.

* batches of the planned shapes pass, in training and in validation
* a batch of another shape stops training in one line that names the shapes
* under replicas the shapes are those of a replica's part
"""

from types import SimpleNamespace

import pytest

from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.errors import UserError
from keras_deepnmt.training.compilation_limit import CompilationLimit

BATCH_SHAPES = [BatchShape(2, 7, 5), BatchShape(4, 11, 5)]
PLANNED = {(2, 7, 5), (4, 11, 5)}


def watch(limit, training=(), evaluation=(), replicas=1):
    """Ends a batch of each step in a model that has met these shapes."""
    limit.set_model(
        SimpleNamespace(
            training_shapes=set(training),
            evaluation_shapes=set(evaluation),
            distribute_strategy=SimpleNamespace(num_replicas_in_sync=replicas),
        )
    )
    limit.on_train_batch_end(0)
    limit.on_test_batch_end(0)


def test_planned_shapes_pass():
    watch(CompilationLimit(BATCH_SHAPES, BATCH_SHAPES), PLANNED, PLANNED)
    watch(CompilationLimit(BATCH_SHAPES), PLANNED, {(3, 3, 3)})
    watch(CompilationLimit(BATCH_SHAPES), {(1, 7, 5), (2, 11, 5)}, replicas=2)


def test_another_shape_stops_training_and_says_which():
    with pytest.raises(UserError) as info:
        watch(CompilationLimit(BATCH_SHAPES), PLANNED | {(2, 13, 5)})
    message = str(info.value)
    assert "the training step met a batch of 2 x 13 x 5" in message
    assert "not one of the 2 planned shapes: 2 x 7 x 5, 4 x 11 x 5." in message
    assert "\n" not in message


def test_a_whole_batch_on_each_replica_is_another_shape():
    with pytest.raises(UserError, match="met a batch of 4 x 11 x 5"):
        watch(
            CompilationLimit(BATCH_SHAPES), {(1, 7, 5), (4, 11, 5)}, replicas=2
        )


def test_validation_has_batch_shapes_of_its_own():
    with pytest.raises(
        UserError, match="the evaluation step met .* 4 x 11 x 5"
    ):
        watch(
            CompilationLimit(BATCH_SHAPES, BATCH_SHAPES[:1]), PLANNED, PLANNED
        )
