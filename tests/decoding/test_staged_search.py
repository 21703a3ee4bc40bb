"""A search in stages finds what a search in one stage finds."""

import keras
import numpy as np
import pytest
from attentive_toy_model import AttentiveToyModel
from toy_model import ON_JAX, ToyModel

from keras_deepnmt.decoding import (
    SearchOptions,
    compile_for,
    search,
)
from keras_deepnmt.decoding.caches import make_longer
from keras_deepnmt.decoding.search_by_options import search_stages
from keras_deepnmt.decoding.staged_search import (
    StagedSearch,
    first_stage,
    next_stage,
)
from keras_deepnmt.decoding.stages import SearchStages
from keras_deepnmt.models import Transformer
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.events import listen

MAX_LENGTH = 60
# Limits of 5 to 60 tokens: some end in each stage.
LENGTHS = [1, 3, 4, 5, 7, 9, 12, 2]
OPTIONS = SearchOptions(
    num_beams=4, max_length_ratio=5.0, max_extra_tokens=0, min_length=40
)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    return Transformer(9, 7, 8, 16, 2, 1, 1, max_length=64)


@pytest.fixture(scope="module")
def staged_model(model):
    """A search by `OPTIONS` whose programs more than one test uses."""
    return StagedSearch(model)


@pytest.fixture(scope="module")
def toy():
    """Without histories in its cache; its programs are compiled sooner."""
    return AttentiveToyModel(7, 9, max_length=64, seed=3)


def sources(lengths=LENGTHS):
    random = np.random.default_rng(5)
    ids = np.zeros((len(lengths), max(lengths)), "int32")
    for row, length in enumerate(lengths):
        ids[row, : length - 1] = random.integers(4, 9, length - 1)
        ids[row, length - 1] = 3
    return ids


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name in ("ids", "truncated"):
        np.testing.assert_array_equal(found[name], expected[name])
    for name in ("scores", "log_probs"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("model", {}),
        pytest.param("model", {"num_beams": 1}, marks=pytest.mark.thorough),
        pytest.param(
            "toy",
            {"sampling": True, "num_beams": 3},
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "toy",
            {"num_groups": 2, "min_length": 0},
            marks=pytest.mark.thorough,
        ),
    ],
    ids=str,
)
def test_result_is_that_of_one_stage(request, kind, changes):
    model = request.getfixturevalue(kind)
    options = OPTIONS.updated(**changes)
    if changes:
        staged = StagedSearch(model)
    else:
        staged = request.getfixturevalue("staged_model")
    found = staged(sources(), options=options, max_length=MAX_LENGTH)
    # XLA and TensorFlow draw other random numbers.
    whole = compile_for(model, search, ON_JAX or options.sampling)
    assert_same(found, whole(sources(), options=options, max_length=MAX_LENGTH))


@pytest.mark.thorough
def test_given_beginnings_phrases_and_coverage_stay(toy):
    prefixes = np.zeros((len(LENGTHS), 3), "int32")
    prefixes[1, :2] = 5
    prefixes[6] = 6
    phrases = np.zeros((len(LENGTHS), 2, 2), "int32")
    phrases[1, 0, 0] = 5
    phrases[5:7] = [[6, 4], [5, 0]]
    options = OPTIONS.updated(num_beams=3, coverage_penalty=0.5)
    found, expected = (
        searched(
            sources(),
            prefixes,
            phrases,
            options=options,
            max_length=MAX_LENGTH,
        )
        for searched in (StagedSearch(toy), compile_for(toy, search, ON_JAX))
    )
    met = expected.pop("constraints_met")
    np.testing.assert_array_equal(found.pop("constraints_met"), met)
    assert_same(found, expected)
    assert (found["ids"][6, :, :3] == 6).all()
    # The source of one token has a limit of 5 tokens.
    assert met[:, 0].all()


@pytest.mark.thorough
def test_only_sentences_that_go_on_are_computed(toy):
    staged = StagedSearch(toy)
    shapes = []
    listen(toy, lambda compilation: shapes.append(compilation.shape))
    # One of 16 sentences does not end in the first stage.
    ids = sources([12, *[2] * 15])
    staged(ids, options=OPTIONS, max_length=MAX_LENGTH)
    assert shapes[0] == (16, 12)
    assert shapes[1:]
    assert all(rows == 8 for rows, _ in shapes[1:])
    number = staged.num_compilations
    # Two of them: there are programs for that.
    ids = sources([12, 11, *[2] * 14])
    staged(ids, options=OPTIONS, max_length=MAX_LENGTH)
    assert staged.num_compilations == number == len(shapes)


@pytest.mark.thorough
def test_another_length_penalty_uses_the_rows_that_are_compiled(toy):
    staged, compilations = StagedSearch(toy), []
    # More than half of the sentences go on.
    for penalty, number in ((0.6, 9), (1.0, 10)):
        staged(
            sources([12] * number + [2] * (16 - number)),
            options=OPTIONS.updated(length_penalty=penalty),
            max_length=MAX_LENGTH,
        )
        compilations.append(staged.num_compilations)
    assert compilations == [2, 2]


@pytest.mark.thorough
def test_a_batch_is_searched_by_the_same_programs_whatever_came_before(toy):
    """Other programs could round otherwise."""
    many, few = (sources([12] * n + [2] * (16 - n)) for n in (9, 1))
    staged, shapes = StagedSearch(toy), []
    listen(toy, lambda compilation: shapes.append(compilation.shape))
    staged(many, options=OPTIONS, max_length=MAX_LENGTH)
    assert [rows for rows, _ in shapes] == [16, 16]
    found = staged(few, options=OPTIONS, max_length=MAX_LENGTH)
    # As if it came first, although the program of all rows was there.
    assert [rows for rows, _ in shapes] == [16, 16, 8]
    alone = StagedSearch(toy)(few, options=OPTIONS, max_length=MAX_LENGTH)
    for name, values in alone.items():
        np.testing.assert_array_equal(values, found[name])


# By several threads beams do so by default, in `test_batches_at_once.py`.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "changes",
    [
        {"num_beams": 1},
        {},
        # Slow, since groups are beams to a stage.
        pytest.param({"num_groups": 2}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_after_many_sentences_half_of_the_rows_leave_within_a_program(
    toy, changes, monkeypatch
):
    monkeypatch.setattr(tuned, "MANY_SENTENCES", 32)
    options = OPTIONS.updated(**changes)
    staged, whole = StagedSearch(toy), compile_for(toy, search, ON_JAX)
    shapes, steps, finish = [], [], StagedSearch._finish
    listen(toy, lambda compilation: shapes.append(compilation.shape))

    def record(self, source_ids, given, first, *args, **kwargs):
        steps.append(int(first[2]["state"]["step"]))
        return finish(self, source_ids, given, first, *args, **kwargs)

    monkeypatch.setattr(StagedSearch, "_finish", record)
    # Limits of 5, 15, 25 and 60 tokens.
    ids = sources([1] * 8 + [3] * 8 + [5] * 8 + [12] * 8)
    # Rows of padding, which are only there to compile, do not count.
    staged(0 * ids, options=options, max_length=MAX_LENGTH)
    staged(ids, options=options, max_length=MAX_LENGTH)
    assert [rows for rows, _ in shapes] == [32, 16]
    # All rows are computed until half of them are over, and one program
    # searches the others to their end.
    found = staged(ids, options=options, max_length=MAX_LENGTH)
    assert steps[-1] == 15
    assert [rows for rows, _ in shapes] == [32, 16, 32]
    assert_same(found, whole(ids, options=options, max_length=MAX_LENGTH))
    # It ends where there is no room for all rows that go on.
    ids = sources([12] * 24 + [1] * 8)
    found = staged(ids, options=options, max_length=MAX_LENGTH)
    assert steps[-1] == first_stage(12, MAX_LENGTH)
    assert [rows for rows, _ in shapes] == [32, 16, 32, 32]
    assert_same(found, whole(ids, options=options, max_length=MAX_LENGTH))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "num_beams"),
    [("toy", 1), ("model", 4)],
)
def test_after_many_sentences_there_is_little_room_at_first(
    request, kind, num_beams, monkeypatch
):
    model = request.getfixturevalue(kind)
    monkeypatch.setattr(tuned, "MANY_SENTENCES", 16)
    options = OPTIONS.updated(num_beams=num_beams)
    staged = StagedSearch(model)
    whole = compile_for(model, search, ON_JAX)
    rooms, advance = [], SearchStages.advance

    def record(self, carried, length=None, most_live=0):
        rooms.append(length)
        return advance(self, carried, length, most_live)

    monkeypatch.setattr(SearchStages, "advance", record)
    # Their limits are 10 to 60 tokens, and the first stage has 26 steps.
    ids = sources([2] * 4 + [9] * 8 + [12] * 4)
    staged(ids, options=options, max_length=MAX_LENGTH)
    assert rooms[0] == 26
    rooms.clear()
    found = staged(ids, options=options, max_length=MAX_LENGTH)
    assert rooms[:2] == [16, 26]
    assert_same(found, whole(ids, options=options, max_length=MAX_LENGTH))


@pytest.mark.thorough
def test_without_compilation_there_is_one_stage(toy):
    staged = StagedSearch(toy, compiled=False)
    # Compiled, the first stage would have 21 steps.
    options, ids = OPTIONS.updated(min_length=22), sources([1, 3, 9])
    found = staged(ids, options=options, max_length=24)
    assert staged.num_compilations == 1
    expected = search(toy, ids, options=options, max_length=24)
    assert_same(
        found, {name: np.asarray(values) for name, values in expected.items()}
    )


@pytest.mark.thorough
@pytest.mark.parametrize("num_beams", [1, 4])
def test_a_model_of_nan_comes_to_an_end(num_beams):
    model = ToyModel(7, 9, max_length=64)
    for weight in model.variables:
        weight.assign(np.full(weight.shape, np.nan))
    found = StagedSearch(model)(
        sources(),
        options=OPTIONS.updated(num_beams=num_beams),
        max_length=MAX_LENGTH,
    )
    assert not np.isfinite(found["scores"][found["ids"].any(-1)]).any()


def test_sentences_are_taken_from_arrays_without_elements(model):
    carried = {
        "limits": np.array([7, 8, 9]),
        "state": {"step": np.array(5), "none": np.zeros((6, 0, 2))},
        "ids": np.arange(12).reshape(6, 2),
    }
    carried = keras.tree.map_structure(keras.ops.convert_to_tensor, carried)
    stages = search_stages(model, OPTIONS.updated(num_beams=2))
    taken = stages.take(carried, np.array([2, 0]))
    taken = keras.tree.map_structure(keras.ops.convert_to_numpy, taken)
    assert taken["limits"].tolist() == [9, 7]
    assert taken["state"]["step"] == 5
    assert taken["ids"].tolist() == [[8, 9], [10, 11], [0, 1], [2, 3]]
    assert taken["state"]["none"].shape == (4, 0, 2)


@pytest.mark.thorough
def test_only_results_leave_the_device(staged_model, monkeypatch):
    sizes, convert = [], keras.ops.convert_to_numpy

    def record(x):
        sizes.append(np.size(convert(x)))
        return convert(x)

    monkeypatch.setattr(keras.ops, "convert_to_numpy", record)
    found = staged_model(sources(), options=OPTIONS, max_length=MAX_LENGTH)
    assert staged_model.num_compilations == 2
    # Not the caches, which are many times as large.
    assert max(sizes) <= found["ids"].size


def test_stages_end_at_the_maximum_length():
    for source_length in (1, 8, 16, 24, 100):
        for max_length in (1, 15, 17, 58, 300, 1024):
            length, stages = first_stage(source_length, max_length), 1
            while length < max_length:
                longer = next_stage(length, max_length)
                assert longer > length
                length, stages = longer, stages + 1
            assert length == max_length
            assert stages <= 8


def test_longer_states_have_room_at_the_end():
    state = {
        "last_ids": np.ones((2, 3)),
        "live_ids": np.ones((2, 3, 4)),
        "cache": {
            "dynamic": {"layer": np.ones((6, 4))},
            "history": {
                "ancestors": np.ones((2, 3, 4)),
                "block": {"key": np.ones((2, 1, 12, 5))},
            },
        },
    }
    longer = make_longer(state, 4, 6)
    assert longer["last_ids"].shape == (2, 3)
    assert longer["live_ids"].shape == (2, 3, 6)
    assert longer["cache"]["dynamic"]["layer"].shape == (6, 4)
    history = longer["cache"]["history"]
    assert history["ancestors"].shape == (2, 3, 6)
    assert history["block"]["key"].shape == (2, 1, 18, 5)
    assert not np.asarray(history["block"]["key"])[:, :, 12:].any()
