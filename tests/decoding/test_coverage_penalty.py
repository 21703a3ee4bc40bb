"""What must be true of the coverage penalty.

* a large beam finds what brute force finds with scores that have it
* the scores of all searches have it, the sums of log-probabilities do not
* for real models it is that of the attention that a second pass records
* without attention to the source it is refused
"""

import keras
import numpy as np
import pytest
from attentive_toy_model import AttentiveToyModel
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt import create_model
from keras_deepnmt.analysis import cross_attention_names, record, recorded_names
from keras_deepnmt.decoding import (
    beam_search,
    compile_for,
    greedy_search,
    sample_search,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Ensemble

LONGEST = 4
PENALTY = 0.7
SIZES = {
    "transformer_tiny": {"intermediate_dim": 16, "num_heads": 2},
    "dense_attention_tiny": {"growth_dim": 4},
}
ON_JAX = keras.backend.backend() == "jax"


def reference_score(model, source, target):
    log_prob = model.reference_log_prob(source, target)
    coverage = model.reference_coverage(source, target)
    divisor = ((5 + len(target)) / 6) ** 0.6
    return log_prob / divisor + PENALTY * coverage


def run(
    model,
    function=beam_search,
    max_length=LONGEST,
    jit_compile=ON_JAX,
    **options,
):
    compiled = compile_for(model, function, jit_compile)
    return compiled(
        SOURCES, max_length=max_length, coverage_penalty=PENALTY, **options
    )


@pytest.mark.thorough
def test_large_beam_finds_what_brute_force_finds():
    model = AttentiveToyModel()
    for seed in range(2):
        model.draw_weights(seed, scale=1.0)
        found = run(model, num_beams=41)
        for row, source in enumerate(SOURCES):
            ranked = sorted(
                (
                    (reference_score(model, source, target), target)
                    for target in model.all_targets(LONGEST)
                ),
                reverse=True,
            )
            scores, targets = zip(*ranked, strict=True)
            ids = [tokens(ids) for ids in found["ids"][row, : len(targets)]]
            assert ids == list(targets)
            np.testing.assert_allclose(
                found["scores"][row, : len(targets)], scores, 1e-4
            )
            assert found["log_probs"][row, 0] == pytest.approx(
                model.reference_log_prob(source, ids[0]), rel=1e-4
            )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (greedy_search, {}),
        (sample_search, {"num_beams": 3}),
        # With this penalty the groups do not meet at the maximum length.
        (
            beam_search,
            {"num_beams": 4, "num_groups": 2, "diversity_penalty": 9.0},
        ),
    ],
)
def test_scores_of_every_search_have_it(function, options):
    model = AttentiveToyModel(vocabulary_size=9, seed=1, scale=1.0)
    found = run(model, function, max_length=7, **options)
    found = {name: x.reshape(3, -1, *x.shape[1:])
             if function is greedy_search else x
             for name, x in found.items()}  # fmt: skip
    for row, source in enumerate(SOURCES):
        for ids, score, log_prob in zip(
            *(found[name][row] for name in ("ids", "scores", "log_probs")),
            strict=True,
        ):
            target = tokens(ids)
            expected = reference_score(model, source, target)
            assert score == pytest.approx(expected, rel=1e-4, abs=1e-4)
            assert log_prob == pytest.approx(
                model.reference_log_prob(source, target), rel=1e-4
            )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "preset",
    [name if name == "dense_attention_tiny" else name for name in SIZES],
)
def test_it_is_the_attention_of_the_recorded_model(preset):
    keras.utils.set_random_seed(3)
    sizes = {
        "hidden_dim": 8,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        **SIZES[preset],
    }
    model = create_model(preset, 17, 19, **sizes)
    found = run(model, num_beams=2, max_length=6)
    names = cross_attention_names(recorded_names(model))
    assert len(names) == 2
    recorded = record(model, names)
    for beam in range(2):
        labels = found["ids"][:, beam]
        begin = np.full((len(labels), 1), 2, "int32")
        target_ids = np.concatenate([begin, labels[:, :-1]], axis=1)
        target_ids[target_ids == 3] = 0  # the end id is not an input
        weights = recorded({"source_ids": SOURCES, "target_ids": target_ids})
        mean = np.mean([np.mean(weights[name], axis=1) for name in names], 0)
        mean = np.where((labels != 0)[..., None], mean, 0.0)  # (B, T, S)
        logs = np.log(np.minimum(mean.sum(axis=1), 1.0) + (SOURCES == 0))
        penalties = np.where(SOURCES == 0, 0.0, logs).sum(axis=1)
        lengths = (labels != 0).sum(axis=1)
        scores = found["log_probs"][:, beam] / ((5 + lengths) / 6) ** 0.6
        np.testing.assert_allclose(
            found["scores"][:, beam], scores + PENALTY * penalties, 1e-4
        )


@pytest.mark.thorough
def test_compiled_is_the_same():
    model = AttentiveToyModel(vocabulary_size=9, seed=1, scale=1.0)
    for function in (greedy_search, beam_search):
        graph = run(model, function)
        compiled = run(model, function, jit_compile=True)
        for name in graph:
            np.testing.assert_allclose(graph[name], compiled[name], 1e-5)


# `test_jax.py` runs this file on JAX, where no such graph is made.
@pytest.mark.thorough
@pytest.mark.skipif(ON_JAX, reason="Only TensorFlow exports.")
def test_graph_of_open_shapes_is_the_same():
    import tensorflow as tf

    model = AttentiveToyModel(vocabulary_size=9, seed=1, scale=1.0)
    open_ids = tf.TensorSpec((None, None), "int32")

    @tf.function(input_signature=[open_ids])
    def graph(source_ids):
        longest = tf.shape(source_ids)[1] + 2
        return beam_search(
            model, source_ids, max_length=longest, coverage_penalty=PENALTY
        )

    found, expected = graph(SOURCES), run(model, max_length=7)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], 1e-5)


def test_without_attention_to_the_source_it_is_refused():
    for model in (ToyModel(), Ensemble([AttentiveToyModel()] * 2)):
        for function in (beam_search, greedy_search):
            with pytest.raises(UserError, match="`coverage_penalty` needs a"):
                function(
                    model, SOURCES, max_length=LONGEST, coverage_penalty=1.0
                )
