"""What the web page shows of a model, for a sentence and its translation."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.analysis import align_words, inspection
from keras_deepnmt.analysis.inspection import Inspector
from keras_deepnmt.data import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.server.engine import Task
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import Version
from keras_deepnmt.server.translator_engine import TranslatorEngine
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla.events import listen
from keras_deepnmt.zoo import create_model

PAIR = ("zwei  Hunde spielen.", "two dogs play.")
SMALL = {"hidden_dim": 16, "num_encoder_layers": 2, "num_decoder_layers": 2}
WIDE = SMALL | {"intermediate_dim": 16, "num_heads": 2}
PRESETS = {
    "everything_tiny": WIDE,
    "dense_nmt_1_tiny": SMALL | {"growth_dim": 8},
    "role_interaction_softmax_tiny": WIDE,
    "surface_fusion_hard_tiny": WIDE | {"mode": "gate"},
}
TITLES = {
    "everything_tiny": {
        "Hybrid self-attention (Song et al., 2018)",
        "Layer aggregation (Dou et al., 2018)",
        "Role interaction (Weissenborn et al., 2019)",
        "Fine-grained layer attention (Liu et al., 2021)",
    },
    "dense_nmt_1_tiny": {"Dense connections (Shen et al., 2018)"},
    "role_interaction_softmax_tiny": {
        "Role interaction (Weissenborn et al., 2019)"
    },
    "surface_fusion_hard_tiny": {"Surface fusion (Liu et al., 2021)"},
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    return train_tokenizer([*PAIR, "die Hunde", "the dogs"] * 3, file, 50)


@pytest.fixture(scope="module")
def load(tokenizer):
    """Makes a translator with a model that has learned nothing."""
    size = tokenizer.vocabulary_size
    return lambda preset: Translator(
        create_model(preset, size, size, **PRESETS[preset]),
        tokenizer,
        tokenizer,
        compiled=False,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("preset", PRESETS)
def test_a_model_is_looked_into(load, preset):
    translator = load(preset)
    [found] = Inspector()(translator, [PAIR])
    # It travels as JSON, which has no NaN.
    found = json.loads(json.dumps(found, allow_nan=False))
    assert found["source"][:3] == [["zwei", 0], ["  ", None], ["Hunde", 1]]
    assert "".join(text for text, _ in found["target"]) == PAIR[1]
    links = align_words(translator, [PAIR[0]], [PAIR[1]])[0]
    assert [tuple(link) for link in found["links"]] == links
    weights = np.array(found["attention"]["values"], float)
    assert np.allclose(weights.sum(-1), 1.0, atol=0.01)
    for one in [found["attention"], *_maps(found)]:
        values = np.array(one["values"], float)
        assert values.shape == (
            len(one["row_names"]),
            len(one["column_names"]),
        )
        low, high = one["limits"]
        assert low <= np.nanmin(values) + 1e-3
        assert np.nanmax(values) <= high + 1e-3
    assert {panel["title"] for panel in found["panels"]} == TITLES[preset]


def _maps(found):
    return [one for panel in found["panels"] for one in panel["maps"]]


@pytest.mark.thorough
def test_the_first_request_of_a_server_makes_nothing_anew(load, monkeypatch):
    """Neither the model that is looked into, nor a graph, nor a program."""
    inspector = Inspector()
    translator = load("role_interaction_softmax_tiny")
    engine = TranslatorEngine(translator, 32, {"inspect": inspector})
    monkeypatch.setattr(engine, "warm_up", lambda is_stopped: None)
    version = Version(1, engine, RequestLimits())
    version.queue.ready.result()
    compilations = []
    listen(translator.model, compilations.append)
    with monkeypatch.context() as patch:
        patch.setattr(inspector, "_begin", _fail)
        patch.setattr(inspection, "record", _fail)
        patch.setattr(tf, "function", _fail)
        for pair in (PAIR, ("Hunde", "the dogs play")):
            job = version.queue.submit([pair], [4], Task("inspect"), 3600)
            [found] = job.future.result()
            assert found["links"]
    version.queue.close()
    assert not compilations


def _fail(*arguments, **keywords):
    raise AssertionError("a client waits for this")


@pytest.mark.thorough
def test_roles_are_those_of_the_tokens(load):
    translator = load("role_interaction_softmax_tiny")
    found, other = Inspector()(translator, [PAIR, PAIR[::-1]])
    roles = np.array(_maps(found)[0]["values"])
    assert np.allclose(roles.sum(-1), 1.0, atol=0.01)
    for one in (found, other):
        names = one["attention"]["column_names"]
        assert _maps(one)[0]["row_names"] == names


def test_a_text_that_the_model_cannot_read_is_refused(load):
    translator = load("role_interaction_softmax_tiny")
    longest = translator.max_source_length
    with pytest.raises(UserError, match="`target` must have 1 to"):
        Inspector()(translator, [("zwei", "two " * longest)])
