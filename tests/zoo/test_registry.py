"""What must be true of the zoo: a preset's name is its function's name, names
are unique, a wrong name is answered with the right one, and presets have the
papers' dimensions."""

import pytest

from keras_deepnmt import zoo
from keras_deepnmt.models import Transformer
from keras_deepnmt.zoo import registry
from keras_deepnmt.zoo.matched_baseline import count_parameters

# hidden, intermediate, heads, encoder layers, decoder layers, dropout
TINY = (128, 256, 4, 4, 4, 0.3)
SMALL = (256, 1024, 4, 2, 2, 0.1)
BASE = (512, 2048, 8, 6, 6, 0.1)
BIG = (1024, 4096, 16, 6, 6, 0.3)
ROLES_SMALL = (256, 512, 4, 3, 3, 0.3)
DIMENSIONS = {
    # variant: dimensions by size
    "transformer": {
        "tiny": TINY,
        "small": SMALL,
        "base": BASE,
        "big": BIG,
    },
    **dict.fromkeys(
        (
            "layer_aggregation_dense",
            "layer_aggregation_linear",
            "layer_aggregation_linear_feed_forward",
            "layer_aggregation_iterative",
            "layer_aggregation_hierarchical",
            "multi_layer_attention_k2",
            "multi_layer_attention_k3",
            "layer_aggregation_iterative_diversity",
            "multi_layer_attention_k2_diversity",
            "layer_aggregation_hierarchical_encoder",
            "layer_aggregation_hierarchical_decoder",
            "layer_aggregation_hierarchical_no_residual",
            "layer_aggregation_hierarchical_top_residual",
            "layer_aggregation_hierarchical_relu",
            "layer_aggregation_hierarchical_attention",
        ),
        {"tiny": TINY, "base": BASE},
    ),
    "layer_aggregation_hierarchical_diversity": {
        "tiny": TINY,
        "base": BASE,
        "big": BIG,
    },
    **dict.fromkeys(
        (
            "hybrid_self_attention_sum",
            "hybrid_self_attention_concat",
            "hybrid_self_attention_gated",
            "hybrid_self_attention_gated_decoder",
        ),
        {"tiny": TINY, "small": SMALL, "base": BASE, "big": BIG},
    ),
    **dict.fromkeys(
        (
            "fine_grained_layer_attention",
            "layer_attention",
            "surface_fusion_hard",
            "surface_fusion_soft",
        ),
        {"tiny": TINY, "base": BASE, "big": BIG},
    ),
    **dict.fromkeys(
        (
            "role_interaction_dense",
            "role_interaction_dense_no_residual",
            "role_interaction_softmax",
            "role_interaction_softmax_no_residual",
        ),
        {"tiny": TINY, "small": ROLES_SMALL, "base": BASE, "big": BIG},
    ),
    **dict.fromkeys(
        (
            "role_interaction_dense_rank_one",
            "role_interaction_dense_cnn",
            "role_interaction_softmax_rank_one",
            "role_interaction_softmax_cnn",
            "role_interaction_onehot",
            "role_interaction_onehot_no_residual",
            "role_interaction_onehot_rank_one",
            "role_interaction_onehot_cnn",
            "contextualized_embedding",
        ),
        {"tiny": TINY, "small": ROLES_SMALL},
    ),
    "everything": {"tiny": TINY},
}
MATCHED = {
    # Widths by vocabularies of 10,000, from the counts of both models.
    "transformer_tiny_matched": TINY,
    "transformer_small_matched": ROLES_SMALL,
    "transformer_base_matched": BASE,
    "transformer_big_matched": BIG,
}
# hidden, growth, attention, embeddings, layers, summary, dropout
CONV_TINY = (128, 64, 128, 128, 4, None, 0.3)
CONV_FOUR = (256, 128, 256, 256, 4, None, 0.2)
CONV_EIGHT = (192, 96, 256, 256, 8, 6, 0.2)
CONV_FIFTEEN = (
    [512] * 10 + [1024] * 3 + [2048] * 2,
    [128] * 10 + [256] * 3 + [512] * 2,
    768,
    768,
    15,
    6,
    0.1,
)
CONV_SIZES = {
    "tiny": CONV_TINY,
    "4l": CONV_FOUR,
    "4l_embed_64": (*CONV_FOUR[:3], 64, *CONV_FOUR[4:]),
    "4l_embed_128": (*CONV_FOUR[:3], 128, *CONV_FOUR[4:]),
    "8l": CONV_EIGHT,
    "8l_embed_64": (*CONV_EIGHT[:3], 64, *CONV_EIGHT[4:]),
    "8l_embed_128": (*CONV_EIGHT[:3], 128, *CONV_EIGHT[4:]),
    "15l": CONV_FIFTEEN,
}
CONVOLUTIONAL = {
    f"{variant}_{size}": dimensions
    for variants, sizes in (
        (("conv_seq2seq", "dense_nmt_1", "dense_nmt_2"), CONV_SIZES),
        (
            ("dense_encoder", "dense_decoder", "dense_attention"),
            {"tiny": CONV_TINY, "4l": CONV_FOUR},
        ),
    )
    for variant in variants
    for size, dimensions in sizes.items()
}
PRESETS = {
    f"{variant}_{size}": dimensions
    for variant, sizes in DIMENSIONS.items()
    for size, dimensions in sizes.items()
}


class Arguments(dict):
    """What a preset was given, in place of a model."""

    def get_config(self):
        return self


def arguments_of(name, *vocabulary_sizes, **overrides):
    return registry.get_preset(name).arguments(*vocabulary_sizes, **overrides)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_dimensions_of_the_papers(name):
    found = arguments_of(name, 11, 13)
    assert PRESETS[name] == (
        found["hidden_dim"],
        found["intermediate_dim"],
        found["num_heads"],
        found["num_encoder_layers"],
        found["num_decoder_layers"],
        found["dropout"],
    )


def test_every_preset_is_in_the_table_of_dimensions():
    assert set(zoo.list_models()) == {*PRESETS, *MATCHED, *CONVOLUTIONAL}


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_convolutional_presets_have_the_dimensions_of_the_paper(name):
    found = arguments_of(name, 11, 13)
    first = found["hidden_dim"]
    attention = found.get("attention_dim", first)
    assert CONVOLUTIONAL[name] == (
        first,
        found["growth_dim"],
        attention,
        found.get("embedding_dim", attention),
        found["num_encoder_layers"],
        found.get("summary_length"),
        found["dropout"],
    )
    assert found["num_decoder_layers"] == found["num_encoder_layers"]


@pytest.mark.parametrize("name", MATCHED)
def test_matched_presets_are_as_large_as_those_with_roles(name):
    sizes = (10_000, 10_000)
    plain, wider = MATCHED[name], arguments_of(name, *sizes)
    assert wider["num_heads"] == plain[2]
    assert wider["hidden_dim"] > plain[0]
    ratio = wider["intermediate_dim"] / wider["hidden_dim"]
    assert ratio == plain[1] / plain[0]
    with_roles = arguments_of(
        name.replace("transformer", "role_interaction_dense")[
            : -len("_matched")
        ],
        *sizes,
    )
    dropped = ("dropout", "source_embedding_layer", "target_embedding_layer")
    counts = [
        count_parameters(
            *sizes,
            **{key: a[key] for key in a if key not in dropped},
        )
        for a in (wider, with_roles)
    ]
    counts[1] += 2 * 32 * plain[0] ** 2
    # Within the parameters of one step in width, and the role encoders.
    assert abs(counts[0] / counts[1] - 1) < 0.02


def test_overrides_win_and_reach_the_slots():
    found = arguments_of(
        "layer_aggregation_hierarchical_base", 11, 13, dropout=0.25
    )
    assert found["dropout"] == found["encoder_aggregation"].dropout == 0.25
    assert found["hidden_dim"] == 512
    empty = arguments_of("everything_tiny", 11, 13, encoder_fusion=None)
    assert empty["encoder_fusion"] is None


def test_the_tiny_preset_shares_what_can_be_shared():
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
