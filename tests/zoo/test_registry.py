"""What must be true of the zoo: a preset's name is its function's name, names
are unique, a wrong name is answered with the right one, and presets have the
papers' dimensions."""

import pytest

from keras_deepnmt import zoo
from keras_deepnmt.models import Transformer
from keras_deepnmt.zoo import registry

DIMENSIONS = {
    # name: hidden, intermediate, heads, encoder layers, decoder layers, dropout
    "transformer_tiny": (128, 256, 4, 4, 4, 0.3),
    "transformer_small": (256, 1024, 4, 2, 2, 0.1),
    "transformer_base": (512, 2048, 8, 6, 6, 0.1),
    "transformer_big": (1024, 4096, 16, 6, 6, 0.3),
}


class Arguments(dict):
    """What a model's class was given, in place of the model."""

    def get_config(self):
        return self


@pytest.fixture
def arguments_of(monkeypatch):
    """`arguments_of(name, …)`: what a preset hands to its model's class."""

    def record(*sizes, **options):
        return Arguments(sizes=sizes, **options)

    monkeypatch.setattr("keras_deepnmt.zoo.transformer.Transformer", record)
    return zoo.create_model


@pytest.mark.parametrize("name", DIMENSIONS)
def test_presets_have_the_dimensions_of_the_papers(name, arguments_of):
    found = arguments_of(name, 11, 13)
    assert found["sizes"] == (11, 13)
    assert DIMENSIONS[name] == (
        found["hidden_dim"],
        found["intermediate_dim"],
        found["num_heads"],
        found["num_encoder_layers"],
        found["num_decoder_layers"],
        found["dropout"],
    )


def test_every_preset_is_in_the_table_of_dimensions():
    assert set(zoo.list_models()) == set(DIMENSIONS)


def test_overrides_win_and_the_model_bears_the_name(arguments_of):
    found = arguments_of("transformer_base", 11, 13, dropout=0.25)
    assert found["dropout"] == 0.25
    assert found["hidden_dim"] == 512
    assert found["name"] == "transformer_base"


def test_the_tiny_preset_shares_what_can_be_shared(arguments_of):
    assert arguments_of("transformer_tiny", 13, 13)["share_embeddings"]
    assert not arguments_of("transformer_tiny", 11, 13)["share_embeddings"]


def test_a_preset_makes_a_model():
    model = zoo.create_model(
        "transformer_small", 11, 13, hidden_dim=8, num_heads=2
    )
    assert isinstance(model, Transformer)
    assert model.name == "transformer_small"
    assert model.get_config()["hidden_dim"] == 8


def test_names_are_listed_by_pattern_and_in_natural_order(monkeypatch):
    names = ["deep_10_tiny", "deep_9_tiny", "wide_tiny"]
    monkeypatch.setattr(registry, "_PRESETS", dict.fromkeys(names))
    assert zoo.list_models() == ["deep_9_tiny", "deep_10_tiny", "wide_tiny"]
    assert zoo.list_models("deep_*") == ["deep_9_tiny", "deep_10_tiny"]
    assert zoo.list_models("none*") == []


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match='mean "transformer_base"'):
        zoo.create_model("transfomer_base", 11, 13)


def test_a_misspelt_argument_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="`num_haeds` is .*mean `num_heads`"):
        zoo.create_model("transformer_tiny", 11, 13, num_haeds=2)


def test_a_taken_name_is_refused(monkeypatch):
    monkeypatch.setattr(registry, "_PRESETS", dict(registry._PRESETS))

    def transformer_tiny():
        pass

    with pytest.raises(ValueError, match="is taken by"):
        registry.register_model(transformer_tiny)


def test_a_name_is_the_name_of_its_function(monkeypatch):
    monkeypatch.setattr(registry, "_PRESETS", {})

    @registry.register_model
    def new_tiny(source_vocabulary_size, target_vocabulary_size, **overrides):
        return Arguments(overrides)

    assert zoo.list_models() == ["new_tiny"]
    assert registry.get_preset("new_tiny") is new_tiny
    assert zoo.create_model("new_tiny", 1, 2, dropout=0.5) == {
        "dropout": 0.5,
        "name": "new_tiny",
    }
