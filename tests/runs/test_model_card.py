"""A model card names papers and directions, and its examples choose one.

* each preset has the papers that it is registered with
* a model of several directions has all of them with their tags
"""

import pytest
import yaml

from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.model_card import _papers, model_card
from keras_deepnmt.zoo import list_models
from keras_deepnmt.zoo.registry import get_preset, register_variant


def test_every_preset_has_papers_with_title_and_address():
    for name in list_models():
        found = _papers(name)
        assert found, name
        for paper in found:
            assert paper.title
            assert paper.address.startswith("https://")
        names = [paper.name for paper in found]
        assert names == [get_preset(name).paper] or name == "everything_tiny"


def test_the_preset_with_layers_of_many_papers_names_them():
    found = [paper.name.split()[0] for paper in _papers("everything_tiny")]
    assert found == ["Vaswani", "Dou", "Song", "Weissenborn", "Liu"]


def test_a_preset_of_the_user_names_no_known_paper():
    sizes = {"tiny": lambda source, target: {}}
    register_variant(dict, sizes, "Smith (2000)")(smith)
    assert _papers("smith_tiny") == []
    assert _papers("nowhere_tiny") == []


def smith(arguments):
    return {}


def card_of(recipe, directions):
    summary = {
        "name": recipe.name,
        "parameters": 7,
        "scores": [],
        "directions": directions,
    }
    return model_card(recipe, summary, "Transformer", "both")


def test_a_model_of_both_directions_has_them_with_their_tags():
    recipe = load_recipe("transformer_small.tatoeba_de_en_both")
    card = card_of(recipe, recipe.data.directions())
    both = (
        "from `de` to `en` with the tag `<2en>`, from `en` to `de` with the "
        "tag `<2de>`."
    )
    assert f"Translates {both}" in card and f"a time, {both}" in card
    assert "the preset `transformer_small` of" in card
    assert 'Translator.load("both", target_language="en")' in card
    assert '"A sentence in de."' in card
    assert "translate both --target-language en <" in card
    assert yaml.safe_load(card.split("---\n")[1])["language"] == ["de", "en"]


@pytest.mark.parametrize(
    ("directions", "argument", "option"),
    [
        # None is needed: one language to write, and text without a tag.
        ([("de", "en", None)], "", ""),
        ([("de", "en", "<bt>"), ("de", "en", None)], "", ""),
        ([(None, None, None), (None, None, "<x>")], "", ""),
        (
            [("de", "en", None), ("en", "de", "<2de>")],
            ', target_language="en"',
            " --target-language en",
        ),
        # The languages are not known, or do not tell the tag.
        ([(None, None, "<x>")], ', tag="<x>"', " --tag '<x>'"),
        (
            [("de", "en", "<a>"), ("de", "en", "<b>")],
            ', tag="<a>"',
            " --tag '<a>'",
        ),
    ],
)
def test_examples_choose_a_direction_where_one_is_needed(
    directions, argument, option
):
    keys = ("source", "target", "tag")
    directions = [dict(zip(keys, one, strict=True)) for one in directions]
    card = card_of(load_recipe("transformer_tiny.demo_de_en"), directions)
    assert f'Translator.load("both"{argument})' in card
    assert f"deepnmt translate both{option} < source.txt" in card
