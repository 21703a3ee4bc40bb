"""What must be true of beam search and greedy search.

* a large beam finds the best of all outputs, and ranks them all
* a model's cache follows its hypothesis
* one beam is greedy search
* the reported score is the score of teacher forcing
* batch mates and padding change nothing; a row of padding gives nothing
* a limit ends an output, with the end id's own log-probability
* hypotheses of one sentence differ; finished ones are never extended
* compiled, graph and dynamic shapes give the same
"""

import logging

import keras
import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import (
    beam_search,
    compile_for,
    greedy_search,
    score_targets,
)

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def search(model, sources=SOURCES, **options):
    return model.compiled(beam_search)(sources, **options)


def ranked_by_brute_force(
    model, source, max_length, length_penalty, length_offset
):
    ranked = []
    for target in model.all_targets(max_length):
        log_prob = model.reference_log_prob(source, target)
        length = (length_offset + len(target)) / (length_offset + 1)
        divisor = length**length_penalty
        ranked.append((log_prob / divisor, log_prob, target))
    return sorted(ranked, reverse=True)


@pytest.mark.parametrize(
    "length_penalty, length_offset",
    [
        (0.6, 5.0),
        (1.0, 0.0),
        pytest.param(0.0, 5.0, marks=pytest.mark.thorough),
        pytest.param(1.5, 5.0, marks=pytest.mark.thorough),
    ],
)
def test_large_beam_finds_what_brute_force_finds(
    model, length_penalty, length_offset
):
    compiled = model.compiled(beam_search, jit_compile=True)
    options = {"length_penalty": length_penalty, "length_offset": length_offset}
    for seed in range(4):
        model.draw_weights(seed, scale=1.0)
        found = compiled(SOURCES, num_beams=41, max_length=4, **options)
        for row, source in enumerate(SOURCES):
            ranked = ranked_by_brute_force(model, source, 4, **options)
            assert len(ranked) == 40
            scores, log_probs, targets = zip(*ranked, strict=True)
            np.testing.assert_allclose(found["scores"][row, :40], scores, 1e-4)
            np.testing.assert_allclose(
                found["log_probs"][row, :40], log_probs, 1e-4
            )
            assert [tokens(i) for i in found["ids"][row, :40]] == list(targets)
            # There is no 41st output.
            assert not found["ids"][row, 40].any()
            assert found["scores"][row, 40] == -np.inf


@pytest.mark.parametrize("num_beams", [2, 7])
def test_score_is_the_score_of_teacher_forcing(num_beams):
    model = ToyModel(vocabulary_size=23, seed=1)
    found = search(model, num_beams=num_beams, max_length=11)
    score = compile_for(model, score_targets)
    for beam in range(num_beams):
        labels = found["ids"][:, beam]
        target_ids = np.concatenate(
            [np.full((3, 1), 2), np.where(labels == 3, 0, labels)[:, :-1]], 1
        ).astype("int32")
        log_probs = score(SOURCES, target_ids, labels)
        np.testing.assert_allclose(
            log_probs.sum(1), found["log_probs"][:, beam], 1e-5, 1e-5
        )
        lengths = (labels != 0).sum(1)
        np.testing.assert_allclose(
            log_probs.sum(1) / ((5 + lengths) / 6) ** 0.6,
            found["scores"][:, beam],
            1e-5,
        )


def test_one_beam_is_greedy_search():
    model = ToyModel(vocabulary_size=13)
    by_greedy = compile_for(model, greedy_search)
    by_beam = compile_for(model, beam_search)
    for seed in range(6):
        model.draw_weights(seed)
        greedy = by_greedy(SOURCES, max_length=19)
        beam = by_beam(SOURCES, num_beams=1, max_length=19)
        np.testing.assert_array_equal(greedy["ids"], beam["ids"][:, 0])
        for name in "scores", "log_probs":
            np.testing.assert_allclose(greedy[name], beam[name][:, 0], 1e-5)


def test_greedy_takes_the_likeliest_token():
    model = ToyModel(vocabulary_size=13, seed=5)
    found = model.compiled(greedy_search)(SOURCES, max_length=7)
    for source, ids in zip(SOURCES, found["ids"], strict=True):
        prefix = []
        while len(prefix) < 6 and 3 not in prefix:
            words = [1, *range(3, 13)]
            prefix.append(
                max(
                    words,
                    key=lambda word, prefix=prefix: model.reference_log_prob(
                        source, [*prefix, word]
                    ),
                )
            )
        assert tokens(ids) == (prefix if 3 in prefix else [*prefix, 3])


@pytest.mark.parametrize(
    "function",
    [beam_search, pytest.param(greedy_search, marks=pytest.mark.thorough)],
)
def test_batch_mates_and_padding_change_nothing(function):
    model = ToyModel(vocabulary_size=13, seed=1)
    run = model.compiled(function)
    together = run(SOURCES, max_length=55)
    wider = np.pad(SOURCES, [(0, 2), (0, 3)])
    padded = run(wider, max_length=58)
    for row in range(3):
        alone = run(SOURCES[row : row + 1], max_length=55)
        for other, at in (alone, 0), (padded, row):
            for name in "scores", "log_probs":
                np.testing.assert_allclose(
                    together[name][row], other[name][at], 1e-5
                )
            np.testing.assert_array_equal(
                together["ids"][row], other["ids"][at][..., :55]
            )
    assert not padded["ids"][3:].any()
    assert np.isneginf(padded["scores"][3:]).all()


def endless_model(max_length=None):
    """A model that has no reason to end a translation."""
    model = ToyModel(vocabulary_size=13, max_length=max_length, seed=2)
    kernel = keras.ops.convert_to_numpy(model.kernel)
    model.kernel.assign(kernel * (np.arange(13) != 3))
    return model


def test_limit_ends_every_output():
    model = endless_model()
    # Long outputs are better still with a penalty this large.
    options = {"num_beams": 3, "length_penalty": 9.0}
    found = search(model, max_length=99, **options)
    for row, source in enumerate(SOURCES):
        limit = (source != 0).sum() + 50
        assert max(len(tokens(ids)) for ids in found["ids"][row]) == limit
        for ids, log_prob in zip(
            found["ids"][row], found["log_probs"][row], strict=True
        ):
            assert ids[len(tokens(ids)) - 1] == 3
            np.testing.assert_allclose(
                model.reference_log_prob(source, tokens(ids)), log_prob, 1e-4
            )
    capped = search(endless_model(max_length=8), max_length=99, **options)
    assert capped["ids"].shape == (3, 3, 8)
    assert (capped["ids"][:, 0, 7] == 3).all()


def test_hypotheses_are_distinct_sorted_and_end_once():
    model = ToyModel(vocabulary_size=13, seed=3)
    found = search(model, num_beams=8, max_length=29)
    for row in range(3):
        assert (np.diff(found["scores"][row]) <= 0).all()
        texts = [tuple(tokens(ids)) for ids in found["ids"][row]]
        assert len(set(texts)) == 8
        for ids in found["ids"][row]:
            end = list(ids).index(3)
            assert not ids[end + 1 :].any()
            assert not np.isin(ids[:end], [0, 2, 3]).any()


def test_finished_hypothesis_is_frozen():
    # The end is certain after token 4 and nearly impossible before it.
    class Certain(ToyModel):
        def log_probs(self, scores):
            scores = super().log_probs(scores)
            return keras.ops.where(
                keras.ops.arange(self.target_vocabulary_size) == 3,
                keras.ops.max(scores, axis=-1, keepdims=True) - 1e-3,
                scores - 1.0,
            )

    model = Certain(vocabulary_size=13, seed=4)
    short = search(model, num_beams=4, max_length=6)
    long = search(model, num_beams=4, max_length=40)
    assert [tokens(i) for i in short["ids"][0]] == [
        tokens(i) for i in long["ids"][0]
    ]
    np.testing.assert_allclose(short["scores"], long["scores"], 1e-5)


def test_search_sees_weights_that_change_later():
    model = ToyModel(vocabulary_size=13, seed=0)
    compiled = compile_for(model, beam_search)
    before = compiled(SOURCES, max_length=9)
    model.draw_weights(seed=1)
    after = compiled(SOURCES, max_length=9)
    assert compiled.num_compilations == 1
    fresh = search(ToyModel(vocabulary_size=13, seed=1), max_length=9)
    assert (before["ids"] != after["ids"]).any()
    np.testing.assert_array_equal(fresh["ids"], after["ids"])


def test_one_compilation_for_each_set_of_shapes():
    def function(model, source_ids, factor):
        return {"product": source_ids * factor}

    compiled = compile_for(ToyModel(), function)
    for source_ids in SOURCES, SOURCES + 1, SOURCES[:2], SOURCES[:2] + 1:
        product = compiled(source_ids, factor=5)["product"]
        np.testing.assert_array_equal(product, source_ids * 5)
    assert compiled.num_compilations == 2
    compiled(SOURCES, factor=6)
    assert compiled.num_compilations == 3


def test_many_shapes_are_met_without_a_warning(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    compiled = compile_for(ToyModel(), greedy_search, jit_compile=False)
    for padding in range(8):
        compiled(np.pad(SOURCES, ((0, 0), (0, padding))), max_length=4)
    assert compiled.num_compilations == 1  # one graph for all
    assert caplog.records == []


def test_uncompiled_gives_the_same():
    model = ToyModel(vocabulary_size=13, seed=6)
    compiled, plain = (
        compile_for(model, beam_search, jit_compile)(SOURCES, max_length=9)
        for jit_compile in (True, False)
    )
    np.testing.assert_array_equal(compiled["ids"], plain["ids"])
    np.testing.assert_allclose(compiled["scores"], plain["scores"], 1e-5)


# `test_jax.py` runs this file on JAX, where no such graph is made.
@pytest.mark.thorough
@pytest.mark.skipif(not ON_TENSORFLOW, reason="Only TensorFlow exports.")
@pytest.mark.parametrize(
    "function",
    [beam_search, greedy_search],
)
def test_graph_of_open_shapes_gives_the_same_without_xla_ops(function):
    import tensorflow as tf

    model = ToyModel(vocabulary_size=13, seed=6, max_length=40)
    open_ids = tf.TensorSpec((None, None), "int32")

    @tf.function(input_signature=[open_ids])
    def graph(source_ids):
        return function(
            model, source_ids, max_length=tf.shape(source_ids)[1] + 50
        )

    definition = graph.get_concrete_function().graph.as_graph_def()
    nodes = list(definition.node)
    for one in definition.library.function:
        nodes.extend(one.node_def)
    assert not [node.op for node in nodes if node.op.startswith("Xla")]
    for source_ids in SOURCES, SOURCES[:1, :4]:
        found = graph(source_ids)
        fixed = model.compiled(function)(source_ids, max_length=40)
        np.testing.assert_array_equal(found["ids"], fixed["ids"])
        np.testing.assert_allclose(found["scores"], fixed["scores"], 1e-5)


def test_refuses_impossible_options():
    model = ToyModel()
    for options, match in [
        (
            {"num_beams": 0, "max_length": 5},
            "`num_beams` must be an integer from 1 to .*: 0",
        ),
        (
            {"length_penalty": -1.0, "max_length": 5},
            "`length_penalty` must be .* at least 0.*: -1",
        ),
        (
            {"length_offset": -1.0, "max_length": 5},
            "`length_offset` must be .* at least 0.*: -1",
        ),
        ({"max_length": 0}, "max_length=0"),
    ]:
        with pytest.raises(ValueError, match=match):
            beam_search(model, SOURCES, **options)
