"""The staged search of an exported graph finds what one long loop finds."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from attentive_toy_model import AttentiveToyModel
from toy_model import ToyModel

from keras_deepnmt.decoding import SearchOptions, search
from keras_deepnmt.decoding.stages import SearchStages
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.serving.graph_search import search_in_graph

pytestmark = pytest.mark.thorough(each_commit=True)

MAX_LENGTH = 60
# Limits of 5 to 60 tokens: some end in each stage.
LENGTHS = [1, 3, 4, 5, 0, 7, 9, 12, 2]
OPTIONS = SearchOptions(
    num_beams=4, max_length_ratio=5.0, max_extra_tokens=0, min_length=40
)


def sources(lengths=LENGTHS):
    random = np.random.default_rng(5)
    ids = np.zeros((len(lengths), max(1, *lengths)), "int32")
    for row, length in enumerate(lengths):
        if length:
            ids[row, : length - 1] = random.integers(4, 9, length - 1)
            ids[row, length - 1] = 3
    return ids


@functools.cache
def graph(function, model, options):
    """A search in a graph that knows no sizes, as an export's."""
    specs = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((), tf.int32)]

    @tf.function(input_signature=specs, autograph=False)
    def run(ids, max_length):
        return function(model, ids, options=options, max_length=max_length)

    return run


@pytest.fixture(scope="module", autouse=True)
def graphs():
    """Graphs are made once and let go at the end."""
    yield
    graph.cache_clear()


def in_graph(function, model, ids, options):
    run = graph(function, model, options)
    outputs = run(tf.constant(ids), tf.constant(MAX_LENGTH))
    return {name: x.numpy() for name, x in outputs.items()}


def assert_same(model, ids, options):
    found = in_graph(search_in_graph, model, ids, options)
    expected = in_graph(search, model, ids, options)
    assert set(found) == set(expected)
    for name in ("ids", "truncated"):
        np.testing.assert_array_equal(found[name], expected[name])
    for name in ("scores", "log_probs"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4)
    return expected


@pytest.fixture(scope="module")
def transformer():
    keras.utils.set_random_seed(3)
    return Transformer(9, 7, 8, 16, 2, 1, 1, max_length=64)


@pytest.fixture(scope="module")
def toy():
    return AttentiveToyModel(7, 9, max_length=64, seed=3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_groups": 2, "min_length": 0},
        *(
            pytest.param(changes, marks=pytest.mark.thorough)
            for changes in (
                {"num_beams": 1},
                {"sampling": True, "num_beams": 3},
                {"coverage_penalty": 0.5},
            )
        ),
    ],
    ids=str,
)
def test_result_is_that_of_one_loop(transformer, toy, changes):
    # Other options than those of the first are no matter of the caches.
    model = toy if changes else transformer
    expected = assert_same(model, sources(), OPTIONS.updated(**changes))
    if not changes:
        lengths = (expected["ids"][:, 0] != 0).sum(-1)
        assert (lengths <= 16).any()
        assert (lengths > 32).any()


@pytest.mark.thorough
def test_states_without_positions_stay_with_their_sentences():
    keras.utils.set_random_seed(3)
    model = ConvSeq2Seq(9, 7, 8, 1, 2, max_length=64)
    assert_same(model, sources(), OPTIONS)


@pytest.mark.parametrize("lengths", [[0], [0, 0], [4]])
def test_padding_alone_and_one_sentence(transformer, lengths):
    assert_same(transformer, sources(lengths), OPTIONS)


@pytest.mark.parametrize("num_beams", [1, 4])
def test_a_model_of_nan_comes_to_an_end(num_beams):
    model = ToyModel(7, 9, max_length=64)
    for weight in model.variables:
        weight.assign(np.full(weight.shape, np.nan))
    options = OPTIONS.updated(num_beams=num_beams)
    found = in_graph(search_in_graph, model, sources(), options)
    assert not np.isfinite(found["scores"][found["ids"].any(-1)]).any()


@pytest.mark.thorough
def test_sentences_that_are_over_are_not_computed(transformer, monkeypatch):
    sizes = []
    advance = SearchStages.advance

    def counted(self, carried, length=None, most_live=0):
        # A side effect in the graph: each stage appends its size.
        rows = tf.shape(self.is_live(carried))[0]
        noted = tf.py_function(
            lambda *x: sizes.append([int(n) for n in x]), [rows, length], []
        )
        with tf.control_dependencies([noted]):
            carried = tf.nest.map_structure(tf.identity, carried)
        return advance(self, carried, length, most_live)

    monkeypatch.setattr(SearchStages, "advance", counted)
    run = graph.__wrapped__(search_in_graph, transformer, OPTIONS)
    run(tf.constant(sources([12, *[1] * 7])), tf.constant(MAX_LENGTH))
    assert sizes[0] == [8, 16]
    assert sizes[-1] == [1, MAX_LENGTH]
    assert all(rows == 1 for rows, _ in sizes[1:])
