"""What must be true of batches and datasets.

* A batch holds begin, end and padding where the model expects them.
* Grain's elements, `tf.data`'s and direct calls are the same batches, from any
  starting step.
* `tf.data` knows its cardinality and takes batches of different shapes.
* No thread tunes buffers of fixed sizes: TensorFlow would wait for it at the
  end of `fit`, sometimes for many seconds.
* A user's mistake met while reading is one line, through `tf.data` too.
* Validation gives every pair exactly once, the too long ones too, in batches
  within the token budget of training, and in as few shapes as are worth
  compiling, which does not change the loss.
"""

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BatchShape,
    choose_batch_shapes,
)
from keras_deepnmt.data.batches.batch_source import (
    BatchSource,
    grain_batches,
    make_batch,
)
from keras_deepnmt.data.batches.datasets import (
    clear_data_errors,
    plan_dataset,
    training_dataset,
    validation_dataset,
    validation_plan,
)
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.shard_writer import ShardWriter
from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Transformer
from keras_deepnmt.models.training_step.tensorflow_batches import (
    array_dataset,
    open_shape_dataset,
    pad_rows,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    directory = tmp_path_factory.mktemp("prepared")
    random = np.random.default_rng(0)
    with ShardWriter(directory, "train", records_per_shard=67) as writer:
        for row in range(211):
            source = random.integers(4, 1000, random.integers(1, 12))
            # The row's own number as first target id tells it apart.
            target = random.integers(4, 1000, random.integers(0, 16))
            writer.write(source, [1000 + row, *target])
    return PairStore(directory, "train")


@pytest.fixture(scope="module")
def plan(store):
    return BatchPlan(
        store.lengths, choose_batch_shapes(store.lengths, 101, 4), 7
    )


def assert_same_batch(batch, expected):
    (inputs, labels), (expected_inputs, expected_labels) = batch, expected
    assert inputs.keys() == expected_inputs.keys()
    for name in inputs:
        np.testing.assert_array_equal(inputs[name], expected_inputs[name])
    np.testing.assert_array_equal(labels, expected_labels)


def direct_batch(store, plan, step):
    batch_shape, rows = plan.batch(step)
    return make_batch(batch_shape, store.read(rows))


def rows_seen(dataset):
    seen = []
    for inputs, _ in dataset:
        seen += [
            int(row) - 1000 for row in np.array(inputs["target_ids"])[:, 1]
        ]
    return sorted(row for row in seen if row >= 0)


def test_a_batch_holds_begin_end_and_padding():
    inputs, labels = make_batch(
        BatchShape(3, 5, 4), [([7, 8], [9]), ([5, 6, 7, 8], [11, 12, 13])]
    )
    assert inputs["source_ids"].tolist() == [
        [7, 8, 3, 0, 0],
        [5, 6, 7, 8, 3],
        [0, 0, 0, 0, 0],
    ]
    assert inputs["target_ids"].tolist() == [
        [2, 9, 0, 0],
        [2, 11, 12, 13],
        [0, 0, 0, 0],
    ]
    assert labels.tolist() == [[9, 3, 0, 0], [11, 12, 13, 3], [0, 0, 0, 0]]
    arrays = (*inputs.values(), labels)
    assert all(array.dtype == np.int32 for array in arrays)


def test_a_batch_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="2 pairs"):
        make_batch(BatchShape(1, 5, 5), [([7], [7]), ([7], [7])])
    with pytest.raises(ValueError, match="5 and 1 ids"):
        make_batch(BatchShape(1, 5, 5), [([7] * 5, [7])])
    with pytest.raises(ValueError, match="1 and 5 ids"):
        make_batch(BatchShape(1, 5, 5), [([7], [7] * 5)])


@pytest.mark.parametrize("start_step", [0, 5, 100_003])
def test_grain_gives_the_batches_of_the_plan(store, plan, start_step):
    steps = plan.batches_per_epoch + 3
    batches = list(grain_batches(store, plan, start_step, steps))
    assert len(batches) == steps
    for step, batch in enumerate(batches):
        expected = direct_batch(store, plan, start_step + step)
        assert_same_batch(batch, expected)


def test_a_later_start_gives_the_rest_of_the_same_batches(store, plan):
    whole = list(grain_batches(store, plan, 0, 31))
    rest = list(grain_batches(store, plan, 19, 12, num_threads=1))
    for batch, expected in zip(rest, whole[19:], strict=True):
        assert_same_batch(batch, expected)


def test_batches_without_an_end_go_on_after_the_epoch(store, plan):
    batches = iter(grain_batches(store, plan))
    for step in range(2 * plan.batches_per_epoch):
        assert_same_batch(next(batches), direct_batch(store, plan, step))


def test_a_grain_iterator_is_restored_where_it_stood(store, plan):
    batches = iter(grain_batches(store, plan, 0, 20))
    for _ in range(7):
        next(batches)
    state = batches.get_state()
    expected = next(batches)
    again = iter(grain_batches(store, plan, 0, 20))
    again.set_state(state)
    assert_same_batch(next(again), expected)


def test_tensorflow_gets_the_same_batches_and_their_number(store, plan):
    steps = plan.batches_per_epoch + 2
    dataset = training_dataset(store, plan, 3, steps)
    assert int(dataset.cardinality()) == steps
    inputs, labels = dataset.element_spec
    assert labels.shape.as_list() == [None, None]
    assert inputs["source_ids"].shape.as_list() == [None, None]
    shapes = set()
    for _ in range(2):  # it can be iterated again
        count = 0
        for step, batch in enumerate(dataset.as_numpy_iterator()):
            assert_same_batch(batch, direct_batch(store, plan, 3 + step))
            shapes.add(batch[0]["source_ids"].shape)
            count += 1
        assert count == steps
    assert len(shapes) == len(plan.batch_shapes)


def test_tensorflow_takes_what_it_needs_of_endless_batches(store, plan):
    dataset = open_shape_dataset(grain_batches(store, plan), 5)
    assert len(list(dataset)) == 5
    endless = open_shape_dataset(grain_batches(store, plan))
    assert int(endless.cardinality()) == -1
    assert len(list(endless.take(3))) == 3


def test_no_thread_tunes_the_buffers(store, plan):
    ids = np.ones((5, 7), "int32")
    arrays = {"source_ids": ids, "target_ids": ids}, ids
    for dataset in (
        open_shape_dataset(grain_batches(store, plan), 5),
        array_dataset(*arrays, shuffle=True),
        pad_rows(array_dataset(*arrays), 4),
    ):
        assert dataset.options().autotune.enabled is False


def test_validation_gives_every_pair_once(store, plan):
    dataset = validation_dataset(store, plan.batch_shapes)
    assert rows_seen(dataset.as_numpy_iterator()) == list(range(211))
    first, again = (list(dataset.as_numpy_iterator()) for _ in range(2))
    for batch, expected in zip(first, again, strict=True):
        assert_same_batch(batch, expected)


def test_validation_keeps_pairs_longer_than_all_batch_shapes(store):
    batch_shapes = (BatchShape(12, 5, 6), BatchShape(8, 7, 5))
    dataset = validation_dataset(store, batch_shapes)
    assert rows_seen(dataset.as_numpy_iterator()) == list(range(211))
    longest = store.lengths.max(axis=0).tolist()
    extra = validation_plan(store.lengths, batch_shapes).batch_shapes[2]
    assert [extra.source_length, extra.target_length] == longest
    assert extra.batch_size == 4  # 4 * 18 tokens fit 72


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_a_long_validation_pair_makes_no_batch_over_the_token_budget(replicas):
    lengths = np.array([[17, 20]] * 2_000 + [[200, 180]])
    batch_shapes = choose_batch_shapes(lengths[:-1], 4_700, 1, replicas)
    plan = validation_plan(lengths, batch_shapes, replicas)
    assert plan.batch_shapes[:-1] == batch_shapes
    longest = plan.batch_shapes[-1]
    assert longest.batch_size % replicas == 0
    assert 3_000 < longest.batch_size * longest.source_length <= 4_700


def test_a_pair_longer_than_the_token_budget_has_a_row_on_each_replica():
    plan = validation_plan(np.array([[900, 9]]), [BatchShape(12, 9, 9)], 4)
    assert plan.batch_shapes[-1] == BatchShape(4, 900, 9)


def test_validation_compiles_no_more_shapes_than_it_is_worth(store, plan):
    def used(num_validations):
        validation = validation_plan(
            store.lengths, plan.batch_shapes, 1, num_validations
        )
        assert sum(validation.rows_per_shape) == len(store)
        assert 0 not in validation.rows_per_shape
        return validation.batch_shapes

    longest = plan.batch_shapes[-1]
    assert used(1) == (longest,)
    assert 1 < len(used(40)) < len(plan.batch_shapes)
    assert used(10_000) == plan.batch_shapes
    assert set(used(40)) < set(plan.batch_shapes)


def test_validation_in_fewer_shapes_has_the_same_loss(store, plan):
    model = Transformer(1000, 1300, 8, 8, 2, 1, 1)
    model.compile("sgd", jit_compile=False)
    scores = [
        model.evaluate(
            plan_dataset(store, validation_plan(store.lengths, shapes, 1, 1)),
            return_dict=True,
            verbose=0,
        )
        for shapes in (plan.batch_shapes, [BatchShape(5, 12, 17)])
    ]
    assert scores[0]["tokens"] == store.lengths[:, 1].sum()
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)


def test_padding_rows_are_counted_nowhere(store, plan):
    real = 0
    for _, labels in validation_dataset(
        store, plan.batch_shapes
    ).as_numpy_iterator():
        real += int((labels != 0).sum())
    assert real == int(store.lengths[:, 1].sum())


def test_elements_can_be_asked_for_one_by_one(store, plan):
    source = BatchSource(store, plan, start_step=4, num_steps=9)
    assert len(source) == 9
    assert_same_batch(source[5], direct_batch(store, plan, 9))


def test_an_id_outside_the_vocabulary_is_told_in_one_line(store, plan):
    narrow = PairStore(store.directory, "train", 500, 2000)
    dataset = training_dataset(narrow, plan, 0, 9)
    with pytest.raises(UserError) as caught, clear_data_errors():
        list(dataset)
    assert "\n" not in str(caught.value)
    assert "is outside the vocabulary of 500" in str(caught.value)
    assert ".array_record, record " in str(caught.value)


def test_other_errors_pass_as_they_are():
    with pytest.raises(ZeroDivisionError), clear_data_errors():
        raise ZeroDivisionError
