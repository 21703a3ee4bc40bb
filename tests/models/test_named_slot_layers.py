"""Layers in slots are given by class name, as a recipe gives them.

* a name, a name with its arguments, and Keras' form make the same layer
* required arguments that are left out are the model's
* a wrong name, layer or argument is refused, naming those that fit the slot
* such a model is saved, and made again from its configuration
"""

import json

import keras
import numpy as np
import pytest
import yaml

import keras_deepnmt.layers
from keras_deepnmt import create_model
from keras_deepnmt.layers import (
    FineGrainedLayerAttention,
    HybridSelfAttention,
    MultiLayerAttention,
    RoleInteraction,
)
from keras_deepnmt.models import (
    ConvSeq2Seq,
    Transformer,
    conv_seq2seq_layers,
    transformer_layers,
)
from keras_deepnmt.models.slot_layers import SLOT_LAYERS, SLOT_PURPOSES
from keras_deepnmt.recipes.loading import load_recipe, save_recipe

SIZES = dict(
    hidden_dim=8,
    intermediate_dim=16,
    num_heads=2,
    num_encoder_layers=3,
    num_decoder_layers=2,
)


def model(text):
    return create_model(
        "transformer_tiny", 11, 11, **SIZES, **yaml.safe_load(text)
    )


@pytest.mark.parametrize(
    "text",
    [
        "encoder_fusion: FineGrainedLayerAttention",
        "encoder_fusion: {FineGrainedLayerAttention: {num_decoder_layers: 2}}",
        "encoder_fusion: {FineGrainedLayerAttention: }",
        "encoder_fusion: {class_name: FineGrainedLayerAttention, "
        "config: {num_decoder_layers: 2}}",
        "encoder_fusion: {class_name: keras_deepnmt>FineGrainedLayerAttention, "
        "config: {num_decoder_layers: 2}}",
    ],
)
def test_a_layer_is_named_by_its_class(text):
    fusion = model(text).encoder_fusion
    assert isinstance(fusion, FineGrainedLayerAttention)
    assert fusion.num_decoder_layers == 2


def test_a_named_layer_holds_another_one():
    made = model(
        "encoder_self_attention: {MultiLayerAttention: {num_layers: 2, "
        "dropout: 0.0, attention: {HybridSelfAttention: {fusion: sum}}}}"
    )
    attention = made.encoder_blocks[2].attention
    assert isinstance(attention, MultiLayerAttention)
    assert attention.num_heads == 2
    assert isinstance(made.encoder_blocks[0].attention, HybridSelfAttention)


def test_a_named_layer_on_the_target_side_does_not_look_ahead():
    made = model("target_embedding_layer: {RoleInteraction: {num_roles: 3}}")
    assert isinstance(made.target_embedding_layer, RoleInteraction)
    assert not made.target_embedding_layer.get_config()["bidirectional"]


def test_layers_declare_slots_that_models_have():
    assert tuple(SLOT_PURPOSES) == transformer_layers.SLOTS
    assert set(conv_seq2seq_layers.SLOTS) < set(SLOT_PURPOSES)
    assert all(SLOT_LAYERS.values())
    for name, layer in vars(keras_deepnmt.layers).items():
        declared = getattr(layer, "slots", ())
        slots = {*SLOT_PURPOSES, "position_encoding"}
        assert set(declared) <= slots, name


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(("slot", "names"), SLOT_LAYERS.items())
def test_every_listed_layer_fits_its_slot(slot, names):
    needed = {"RoleInteraction": 3, "ContextualizedEmbedding": 3}
    for name in names:
        options = {"num_roles": needed[name]} if name in needed else {}
        if name == "HybridSelfAttention":
            options = {"fusion": "sum", "branches": ["forward", "local"]}
        layer = {name: options}
        made = create_model(
            "transformer_tiny", 11, 11, **SIZES, **{slot: layer}
        )
        assert made.count_params()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "encoder_fusion: FineGrainLayerAttention",
            'no layer "FineGrainLayerAttention". Did you mean '
            '"FineGrainedLayerAttention"? Layers for this slot: '
            "FineGrainedLayerAttention.",
        ),
        (
            "encoder_self_attention: SurfaceFusion",
            '`encoder_self_attention`: "SurfaceFusion" does not fit this slot. '
            "Layers for this slot: HybridSelfAttention, MultiHeadAttention, "
            "MultiLayerAttention.",
        ),
        (
            "output_fusion: x",
            '"x" is not a layer. Layers for this slot: Sur',
        ),
        ("output_fusion: 3", "Received: output_fusion=3. Layers for this slot"),
        ("output_fusion: {a: {}, b: {}}", "Layers for this slot: Surface"),
        (
            "encoder_fusion: {FineGrainedLayerAttention: "
            "{num_decoder_layer: 2}}",
            "`num_decoder_layer` is not an argument of "
            "FineGrainedLayerAttention. Did you mean `num_decoder_layers`?",
        ),
        (
            "source_embedding_layer: RoleInteraction",
            "`source_embedding_layer`: RoleInteraction needs `num_roles`.",
        ),
        (
            "encoder_fusion: {FineGrainedLayerAttention: {dropout: 3}}",
            "`encoder_fusion`: FineGrainedLayerAttention: `dropout` must",
        ),
        (
            "encoder_self_attention: {MultiLayerAttention: {attention: Dense}}",
            '`encoder_self_attention.attention`: "Dense" is not a layer.',
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(text, message):
    with pytest.raises(ValueError) as info:
        model(text)
    assert message in str(info.value)


@pytest.mark.parametrize("slot", ["encoder_self_attention", "encoder_fusion"])
def test_a_class_in_the_place_of_an_object_is_refused_with_the_remedy(slot):
    class MyLayer(keras.layers.Layer):
        pass

    with pytest.raises(ValueError) as info:
        Transformer(8, 8, **SIZES, **{slot: MyLayer})
    assert str(info.value).startswith(f"`{slot}`: ")
    assert "MyLayer, a class; give an object: MyLayer(...)." in str(info.value)


def test_a_class_in_the_place_of_an_object_within_a_layer_is_refused_too():
    with pytest.raises(ValueError, match=r"give an object: HybridSelfAtt.*\("):
        MultiLayerAttention(2, attention=HybridSelfAttention)


def test_a_layer_of_the_users_own_is_named_too():
    @keras.saving.register_keras_serializable(package="mine")
    class FirstState(keras.layers.Layer):
        def call(self, layer_states):
            return [layer_states[0]] * 2

    made = model("encoder_fusion: mine>FirstState")
    assert type(made.encoder_fusion) is FirstState


def test_a_model_with_named_layers_is_made_again():
    made = model("encoder_fusion: FineGrainedLayerAttention")
    again = Transformer.from_config(made.get_config())
    again.set_weights(made.get_weights())
    ids = np.array([[5, 6, 3]], "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    np.testing.assert_array_equal(made(inputs), again(inputs))


def test_a_run_records_named_layers_so_that_they_load(tmp_path):
    recipe = load_recipe(
        "transformer_tiny.demo_de_en",
        {"model.overrides.output_fusion": {"SurfaceFusion": {"mode": "soft"}}},
    )
    save_recipe(recipe, tmp_path / "recipe.yaml", {})
    overrides = load_recipe(tmp_path / "recipe.yaml").model.overrides
    assert json.loads(json.dumps(overrides)) == overrides
    made = create_model("transformer_tiny", 11, 11, **overrides)
    assert made.output_fusion.mode == "soft"


def test_the_convolutional_model_takes_names_too():
    made = ConvSeq2Seq(
        *(11, 11, 8, 1, 1),
        source_embedding_layer={"RoleInteraction": {"num_roles": 3}},
    )
    assert isinstance(made.source_embedding_layer, RoleInteraction)
