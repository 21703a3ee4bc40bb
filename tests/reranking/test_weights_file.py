"""Weights are read for the scores that they were tuned for."""

import json

import pytest

from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.reranking.weights_file import read_weights, weights_text

MODELS = [("runs/mine", "search"), ("runs/other", "forward")]
DIRECTIONS = ["search", "forward"]


@pytest.mark.parametrize(
    "name", ["length_penalty", "length_offset", "coverage_penalty"]
)
def test_scores_of_other_options_are_refused(tmp_path, name):
    file, options = tmp_path / "weights.json", SearchOptions(**{name: 0.2})
    file.write_text(weights_text([0.6, 0.4], MODELS, options, {}))
    assert read_weights(file, DIRECTIONS, options) == [0.6, 0.4]
    said = f"tuned with --{name.replace('_', '-')} 0.2"
    with pytest.raises(UserError, match=said):
        read_weights(file, DIRECTIONS, SearchOptions())


def test_a_file_that_names_no_option_of_the_scores_is_refused(tmp_path):
    file = tmp_path / "weights.json"
    content = json.loads(weights_text([1, 2], MODELS, SearchOptions(), {}))
    del content["coverage_penalty"]
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="not a file of weights, which"):
        read_weights(file, DIRECTIONS, SearchOptions())
