"""What must be true of searches among some target tokens.

* translations consist of them, and have the probabilities given these tokens
* the best of a large beam is the best that brute force finds
* prefixes and phrases keep their tokens
* a search with all tokens is the search without candidates
* ensembles restrict each of their models
* so do models with quantized weights, of which the matrix has no scale
* a sample of these tokens alone is drawn with and without candidates
"""

import collections
import itertools
from functools import partial

import keras
import numpy as np
import pytest
from toy_model import ON_JAX, eagerly

from keras_deepnmt.decoding import (
    SearchOptions,
    compile_for,
    search,
)
from keras_deepnmt.models import Ensemble, Transformer
from keras_deepnmt.models.restricted_vocabulary import restrict_vocabulary

SOURCES = np.array([[4, 8, 5, 3, 0], [6, 3, 0, 0, 0]], "int32")
IDS = np.array([0, 1, 2, 3, 5, 9], "int32")
LONGEST = 4
OPTIONS = SearchOptions(allow_unknown=False)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    built = Transformer(9, 11, 8, 16, 2, 1, 1, max_length=16)
    for variable in built.trainable_variables:
        # Far from uniform distributions.
        variable.assign(2.0 * variable)
    return built


def run(model, candidate_ids=IDS, max_length=LONGEST, jit=False, **options):
    given = {
        name: options.pop(name, None)
        for name in ("prefix_ids", "constraint_ids", "max_lengths")
    }
    compiled = compile_for(model, search)
    call = compiled if jit else partial(eagerly, search, model)
    return call(
        SOURCES,
        *given.values(),
        candidate_ids,
        options=OPTIONS.updated(**options),
        max_length=max_length,
    )


def reference_log_prob(model, source, target):
    """The sum of log-probabilities given that all tokens are in `IDS`."""
    memory = model.encode(source[None])
    scores = model.decode(np.array([[2, *target[:-1]]]), memory)
    scores = np.asarray(scores, "float64")[0][:, IDS]
    log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    places = [IDS.tolist().index(token) for token in target]
    return log_probs[np.arange(len(target)), places].sum()


# On JAX, whose loops are always compiled, one of them is enough.
@pytest.mark.parametrize(
    "jit",
    [True]
    if ON_JAX
    else [False, pytest.param(True, marks=pytest.mark.thorough)],
)
def test_large_beam_finds_what_brute_force_finds(model, jit):
    words = (5, 9)
    targets = [
        [*beginning, 3]
        for length in range(LONGEST)
        for beginning in itertools.product(words, repeat=length)
    ]
    outputs = run(model, num_beams=len(targets), jit=jit)
    for row, source in enumerate(SOURCES):
        expected = {
            tuple(target): reference_log_prob(model, source, target)
            for target in targets
        }
        found = {
            tuple(ids[ids != 0].tolist()): log_prob
            for ids, log_prob in zip(
                outputs["ids"][row], outputs["log_probs"][row], strict=True
            )
        }
        assert found == pytest.approx(expected, abs=1e-4)
        assert sorted(outputs["scores"][row], reverse=True) == list(
            outputs["scores"][row]
        )


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 1},
        {"num_beams": 3, "sampling": True},
        *(
            pytest.param(options, marks=pytest.mark.thorough)
            for options in (
                {"num_beams": 4, "num_groups": 2},
                {"num_beams": 3, "no_repeat_ngram_size": 1},
                {"num_beams": 3, "coverage_penalty": 0.5},
            )
        ),
    ],
    ids=str,
)
def test_every_search_keeps_to_them(model, options):
    outputs = run(model, max_length=9, **options)
    possible = np.isfinite(outputs["scores"])
    assert possible.any(axis=1).all()
    assert set(np.unique(outputs["ids"])) <= set(IDS.tolist())


def test_prefixes_phrases_and_limits_keep_their_tokens(model):
    outputs = run(
        model,
        max_length=9,
        num_beams=4,
        prefix_ids=np.array([[9, 5], [0, 0]], "int32"),
        constraint_ids=np.array([[[5, 9]], [[9, 0]]], "int32"),
        max_lengths=np.array([0, 3], "int32"),
    )
    assert outputs["ids"][0, :, :2].tolist() == [[9, 5]] * 4
    assert outputs["constraints_met"][:, 0].all()
    first = outputs["ids"][0, 0].tolist()
    assert [5, 9] in [first[n : n + 2] for n in range(8)]
    second = outputs["ids"][1]
    assert 9 in second[0].tolist()
    assert ((second != 0).sum(-1) <= 3).all()


@pytest.mark.thorough
def test_all_tokens_change_nothing(model):
    every = np.arange(11, dtype="int32")
    found = run(model, every, max_length=9, num_beams=3)
    expected = run(model, None, max_length=9, num_beams=3)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5)


def test_ensembles_restrict_each_model(model):
    keras.utils.set_random_seed(4)
    other = Transformer(9, 11, 8, 16, 2, 2, 1, max_length=16)
    for mean in ("arithmetic", "geometric"):
        ensemble = Ensemble([model, other], [1, 3], mean)
        found = restrict_vocabulary(ensemble, IDS)
        numbers = np.array([[2, 4, 5], [2, 5, 4]])
        log_probs = found.decode(numbers, found.encode(SOURCES))
        single = [
            np.asarray(
                keras.ops.log_softmax(
                    keras.ops.take(
                        m.decode(IDS[numbers], m.encode(SOURCES)), IDS, axis=-1
                    )
                )
            )
            for m in (model, other)
        ]
        if mean == "arithmetic":
            expected = np.log(
                0.25 * np.exp(single[0]) + 0.75 * np.exp(single[1])
            )
        else:
            mixed = 0.25 * single[0] + 0.75 * single[1]
            expected = mixed - np.log(np.exp(mixed).sum(-1, keepdims=True))
        np.testing.assert_allclose(log_probs, expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["int8", "int4"])
@pytest.mark.parametrize("is_tied", [True, False], ids=["tied", "untied"])
def test_quantized_weights_keep_their_scale(mode, is_tied):
    keras.utils.set_random_seed(5)
    model = Transformer(
        *(9, 11, 8, 16, 2, 1, 1),
        max_length=16,
        tie_output_embedding=is_tied,
        output_bias=True,
    )
    model.output_bias.bias.assign(np.linspace(-1, 1, 11))
    model.target_embedding.quantize(mode)
    restricted = restrict_vocabulary(model, IDS)
    numbers = np.array([[2, 4, 5], [2, 5, 4]])
    memory = model.encode(SOURCES)
    found = restricted.log_probs(restricted.decode(numbers, memory))
    full = np.asarray(model.decode(IDS[numbers], memory))[..., IDS]
    expected = keras.ops.log_softmax(full)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_too_few_tokens_are_refused(model):
    for ids in (IDS[:4], IDS[None]):
        with pytest.raises(ValueError, match="must have the shape"):
            restrict_vocabulary(model, ids)


def test_samples_are_those_of_all_tokens_that_are_possible(model):
    few = np.setdiff1d(np.arange(11, dtype="int32"), [6])
    options = {"num_beams": 60, "sampling": True, "max_length": 6}
    drawn, expected = (
        [collections.Counter(map(tuple, ids.tolist())) for ids in found["ids"]]
        for found in (run(model, ids, **options) for ids in (few, None))
    )
    for of_few, of_all in zip(drawn, expected, strict=True):
        possible = [ids for ids in of_all.elements() if 6 not in ids]
        assert len(possible) >= 20
        assert not collections.Counter(possible) - of_few
