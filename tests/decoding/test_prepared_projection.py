"""Searches of few hypotheses prepare the projection to logits once.

* the model's own projection is not called then, and the result is the same
* a projection of one state, of many, and to weights of 8 bits is the model's
"""

import warnings

import keras
import numpy as np
import pytest

from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.decoding.staged_search import StagedSearch
from keras_deepnmt.models import ConvSeq2Seq, Ensemble, Transformer

# The first stage of their search has 12 steps, the next one 25.
SOURCES = np.array([[4, 8, 3], [6, 5, 3]], "int32")
MAX_LENGTH = 25
OPTIONS = SearchOptions(
    num_beams=2, min_length=20, max_length_ratio=0.0, max_extra_tokens=25
)


def transformer(**options):
    keras.utils.set_random_seed(3)
    return Transformer(9, 11, 8, 16, 2, 1, 1, max_length=32, **options)


def conv_seq2seq():
    keras.utils.set_random_seed(3)
    return ConvSeq2Seq(9, 11, 8, 1, 1, max_length=32)


def run(model, **how):
    search = StagedSearch(model, **how)
    return search(SOURCES, options=OPTIONS, max_length=MAX_LENGTH)


def refuse(states):
    raise AssertionError("The model's own projection was called.")


def members(model):
    return model.models if isinstance(model, Ensemble) else [model]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        transformer,
        conv_seq2seq,
        lambda: Ensemble([transformer(), conv_seq2seq()]),
    ],
    ids=["transformer", "conv_seq2seq", "ensemble"],
)
def test_no_step_calls_the_own_projection(make, monkeypatch):
    model = make()
    for member in members(model):
        monkeypatch.setattr(member, "repeated_projection", lambda _: None)
    expected = run(model)
    monkeypatch.undo()
    for member in members(model):
        monkeypatch.setattr(member, "project", refuse)
    found = run(model)
    np.testing.assert_array_equal(found["ids"], expected["ids"])
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-5)


@pytest.mark.parametrize("num_states", [None, 1, 33])
def test_one_state_and_many_use_the_own_projection(num_states):
    assert transformer().repeated_projection(num_states) is None
    assert transformer().repeated_projection(4) is not None


def test_untied_weights_need_no_other_order():
    model = transformer(tie_output_embedding=False)
    assert model.repeated_projection(4) is None


@pytest.mark.thorough
def test_weights_of_8_bits_have_a_projection_of_their_own():
    model = transformer()
    with warnings.catch_warnings():
        # Keras warns of each layer that has nothing to convert.
        warnings.simplefilter("ignore")
        model.quantize("int8")
    assert model.repeated_projection(4) is None
    assert np.isfinite(run(model, compiled=False)["scores"]).all()
