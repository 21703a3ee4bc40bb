"""What the web page shows of a model, for a sentence and its translation."""

import json

import numpy as np
import pytest

from keras_deepnmt.analysis import align_words
from keras_deepnmt.analysis.inspection import Inspector
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator

PAIR = ("Zwei  Hunde spielen.", "Two dogs play.")
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
}


@pytest.fixture(params=TITLES)
def preset(request):
    return request.param


def test_a_model_is_looked_into(run_dirs, preset):
    translator = Translator.load(run_dirs[preset], compiled=False)
    [found] = Inspector()(translator, [PAIR])
    # It travels as JSON, which has no NaN.
    found = json.loads(json.dumps(found, allow_nan=False))
    assert found["source"][:3] == [["Zwei", 0], ["  ", None], ["Hunde", 1]]
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


def test_roles_are_those_of_the_tokens(run_dirs):
    run_dir = run_dirs["role_interaction_softmax_tiny"]
    translator = Translator.load(run_dir, compiled=False)
    inspector = Inspector()
    short, other = inspector(translator, [PAIR, PAIR[::-1]])
    roles = np.array(_maps(short)[0]["values"])
    assert np.allclose(roles.sum(-1), 1.0, atol=0.01)
    assert _maps(short)[0]["row_names"] == short["attention"]["column_names"]
    assert _maps(other)[0]["row_names"] == other["attention"]["column_names"]


def test_a_text_that_the_model_cannot_read_is_refused(run_dirs):
    run_dir = run_dirs["role_interaction_softmax_tiny"]
    translator = Translator.load(run_dir, compiled=False)
    with pytest.raises(UserError, match="`target` must have 1 to"):
        Inspector()(translator, [("Zwei", "two " * 2000)])
