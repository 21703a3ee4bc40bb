"""A model card names the papers of its preset."""

from keras_deepnmt.runs.model_card import _papers
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
