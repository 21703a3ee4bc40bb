"""A minimum length is kept by a translator, its graph and a recipe."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import make_translator

from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.serving.serving_graph import ServingGraph


@pytest.mark.thorough
def test_translators_and_graphs_keep_the_minimum(tmp_path):
    translator = make_translator(
        tmp_path, min_length=5, num_beams=2, compiled=False
    )
    assert translator.min_length == 5
    source = "der Hund"
    for hypothesis in translator.translate_nbest([source], 2)[0]:
        assert len(hypothesis.ids) - 1 >= 5
    graph = ServingGraph(translator)
    ids = graph.search(tf.constant([source]), 0.6)["ids"].numpy()
    assert (np.count_nonzero(ids, axis=-1) - 1).min() >= 5
    assert graph.options.as_dict()["min_length"] == 5


def test_recipes_take_a_minimum():
    name, key = "transformer_tiny.demo_de_en", "decoding.min_length"
    plain, changed = load_recipe(name), load_recipe(name, {key: 2})
    expected = plain.decoding.search_options().updated(min_length=2)
    assert changed.decoding.search_options() == expected
    assert SearchOptions.from_mapping({"num_beams": 4}).min_length == 0
