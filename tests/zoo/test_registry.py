"""What must be true of the zoo: a preset's name is its function's name, names
are unique, a wrong name gets the right one as a suggestion, and presets have
the dimensions that the papers print, which stand beside the presets."""

import re

import pytest

from keras_deepnmt import zoo
from keras_deepnmt.layers import HybridSelfAttention
from keras_deepnmt.models import Transformer
from keras_deepnmt.zoo import registry
from keras_deepnmt.zoo.matched_baseline import count_parameters
from keras_deepnmt.zoo.papers import describe_paper, papers

SIZE = re.compile(r"_((?:tiny|small|base|big|\d+l)(?:_embed_\d+)?)$")
DESCRIBED = {paper.name: paper for paper in papers()}
# Sizes of the plain Transformer, for papers that print no others.
PLAIN = DESCRIBED["Vaswani et al. (2017)"].dimensions
MATCHED = zoo.list_models("transformer_*_matched")
PRESETS = [name for name in zoo.list_models() if name not in MATCHED]


class Arguments(dict):
    """What a preset was given, in place of a model."""

    def get_config(self):
        return self


def arguments_of(name, *vocabulary_sizes, **overrides):
    return registry.get_preset(name).arguments(*vocabulary_sizes, **overrides)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_dimensions_of_the_papers(name):
    size, found = SIZE.search(name)[1], arguments_of(name, 11, 13)
    paper = DESCRIBED.get(registry.get_preset(name).paper)
    printed = paper.dimensions if paper else {}
    expected = {**PLAIN, **printed}[size]
    assert {key: found.get(key) for key in expected} == expected
    # What a size leaves out is not given.
    sizes = {"hidden_dim", "num_heads", "growth_dim", "embedding_dim"}
    assert sizes & set(found) <= set(expected)


def test_every_paper_with_presets_is_described():
    names = {registry.get_preset(name).paper for name in zoo.list_models()}
    assert names - {"all papers"} == set(DESCRIBED)


def test_a_paper_is_described_once():
    with pytest.raises(ValueError, match="described once"):
        describe_paper("Dou et al. (2018)", "title", "link", "changes", "`x_*`")


def test_the_patterns_of_papers_match_their_presets():
    for paper in DESCRIBED.values():
        patterns = re.findall("`(.*?)`", f"{paper.presets}, {paper.baseline}")
        patterns = [
            pattern.replace("{encoder,decoder,attention}", "[ead]*")
            for pattern in patterns
        ]
        assert all(zoo.list_models(pattern) for pattern in patterns)
        own = {
            name
            for name in zoo.list_models()
            if registry.get_preset(name).paper == paper.name
        }
        matched = {n for p in patterns for n in zoo.list_models(p)}
        assert own <= matched, paper.name


@pytest.mark.parametrize("name", MATCHED)
def test_matched_presets_are_as_large_as_those_with_roles(name):
    sizes = (10_000, 10_000)
    wider = arguments_of(name, *sizes)
    with_roles = arguments_of(
        name.replace("transformer", "role_interaction_dense")[
            : -len("_matched")
        ],
        *sizes,
    )
    for same in ("num_heads", "dropout"):
        assert wider[same] == with_roles[same]
    assert wider["hidden_dim"] > with_roles["hidden_dim"]
    ratio, plain_ratio = (
        found["intermediate_dim"] / found["hidden_dim"]
        for found in (wider, with_roles)
    )
    assert ratio == plain_ratio
    dropped = ("dropout", "source_embedding_layer", "target_embedding_layer")
    counts = [
        count_parameters(
            *sizes,
            **{key: a[key] for key in a if key not in dropped},
        )
        for a in (wider, with_roles)
    ]
    counts[1] += 2 * 32 * with_roles["hidden_dim"] ** 2
    # Within the parameters of one step in width, and the role encoders.
    assert abs(counts[0] / counts[1] - 1) < 0.02


# One matrix for source, target and output; two; or three.
ONE, TWO, THREE = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    "pattern, expected",
    [
        # Vaswani et al. (2017), Section 3.4: one matrix.
        ("transformer_base", ONE),
        ("transformer_big", ONE),
        # Song et al. (2018): 11.9 M parameters are those of one matrix.
        ("transformer_small", ONE),
        ("hybrid_self_attention_*_small", ONE),
        ("hybrid_self_attention_*_base", ONE),
        ("hybrid_self_attention_*_big", ONE),
        # Liu et al. (2021): the released command shares all embeddings.
        ("fine_grained_layer_attention_ba*", ONE),
        ("layer_attention_b*", ONE),
        ("surface_fusion_*_b*", ONE),
        ("layer_fusion_baseline_*", ONE),
        # Dou et al. (2018): the toolkit has three matrices.
        ("layer_aggregation_*_base", THREE),
        ("layer_aggregation_*_big", THREE),
        ("multi_layer_attention_*_base", THREE),
        # Weissenborn et al. (2019) do not say; all of its models are alike.
        ("role_interaction_*_small", TWO),
        ("role_interaction_*_b[ai]*", TWO),
        ("contextualized_embedding_small", TWO),
    ],
)
def test_presets_share_embeddings_as_the_papers_do(pattern, expected):
    names = zoo.list_models(pattern)
    assert names
    for name in names:
        found = arguments_of(name, 13, 13)
        options = (
            found.get("share_embeddings", False),
            found.get("tie_output_embedding", True),
        )
        assert options == expected, name
        assert not arguments_of(name, 11, 13).get("share_embeddings"), name


def size_of(name, *vocabulary_sizes, **options):
    """The parameters of a preset with empty slots."""
    found = arguments_of(name, *vocabulary_sizes)
    found.pop("dropout")
    return count_parameters(*vocabulary_sizes, **found, **options)


def test_baselines_have_the_printed_sizes():
    # Song et al. (2018), results on IWSLT14: the baseline has 11.9 M, with
    # 32,000 word pieces of both languages.
    for name in ("hybrid_self_attention_baseline_small", "transformer_small"):
        assert round(size_of(name, 32_000, 32_000) / 1e6, 1) == 11.9
    # Weissenborn et al. (2019): 3 + 3 layers, counted from the description,
    # with a bias of the keys.
    name = "role_interaction_baseline_small"
    assert size_of(name, 0, 0, key_bias=True) == 3_953_664
    # Vaswani et al. (2017), Section 3: the blocks of the base model, counted
    # from the equations, with a bias of the keys.
    name = "layer_aggregation_baseline_base"
    assert size_of(name, 0, 0, key_bias=True) == 44_138_496
    assert size_of("layer_aggregation_baseline_base", 11, 13) - size_of(
        "layer_aggregation_baseline_base", 0, 0
    ) == 512 * (11 + 2 * 13)


def test_baselines_are_their_papers_models_with_empty_slots():
    baselines = zoo.list_models("*_baseline_*")
    assert len(baselines) == 10
    for name in baselines:
        family, size = name.split("_baseline_")
        prefix = {"layer_fusion": "surface_fusion"}.get(family, family)
        for other in zoo.list_models(f"{prefix}_*_{size}"):
            found, paper = (arguments_of(n, 13, 13) for n in (name, other))
            assert found == {key: paper[key] for key in found}, other
        assert registry.get_preset(name).variant == "transformer"


def test_overrides_win_and_reach_the_slots():
    found = arguments_of(
        "layer_aggregation_hierarchical_base", 11, 13, dropout=0.25
    )
    assert found["dropout"] == found["encoder_aggregation"].dropout == 0.25
    assert found["hidden_dim"] == 512
    empty = arguments_of("everything_tiny", 11, 13, encoder_fusion=None)
    assert empty["encoder_fusion"] is None


FOLLOWED = {
    "attention_dropout": 0.25,
    "key_bias": True,
    "layer_norm_epsilon": 1e-3,
    "activation": "gelu",
}
HAVE = {
    # What the layers of a preset have of `FOLLOWED`.
    "hybrid_self_attention_gated_decoder_tiny": (
        "attention_dropout",
        "key_bias",
    ),
    "multi_layer_attention_k2_tiny": (
        "attention_dropout",
        "key_bias",
        "layer_norm_epsilon",
    ),
    "layer_aggregation_hierarchical_attention_tiny": (
        "attention_dropout",
        "key_bias",
        "layer_norm_epsilon",
    ),
    "surface_fusion_hard_tiny": ("attention_dropout", "key_bias", "activation"),
    "fine_grained_layer_attention_tiny": ("layer_norm_epsilon",),
}


@pytest.mark.parametrize("name", HAVE)
def test_the_models_options_reach_the_layers_in_slots(name):
    found = arguments_of(name, 11, 13, **FOLLOWED)
    layers = [value for value in found.values() if hasattr(value, "get_config")]
    assert layers
    for layer in layers:
        config = layer.get_config()
        assert {key for key in FOLLOWED if key in config} == set(HAVE[name])
        for key in HAVE[name]:
            assert config[key] == FOLLOWED[key]
    inside = arguments_of("everything_tiny", 11, 13, **FOLLOWED)
    inside = inside["encoder_self_attention"].get_config()["attention"]
    assert inside["config"]["attention_dropout"] == 0.25


def test_options_of_the_layers_in_slots_are_overrides_too():
    found = arguments_of(
        "hybrid_self_attention_gated_decoder_tiny", 11, 13, window=[1, 4]
    )
    for slot in ("encoder_self_attention", "decoder_self_attention"):
        assert found[slot].get_config()["window"] == [1, 4]
    assert "window" not in found
    model = zoo.create_model(
        "surface_fusion_hard_tiny",
        *(11, 13),
        **dict(num_encoder_layers=1, num_decoder_layers=1, weight=0.5),
    )
    assert model.output_fusion.weight == 0.5


@pytest.mark.parametrize(
    "name, option, nearest",
    [
        ("hybrid_self_attention_gated_tiny", "windw", "window"),
        ("transformer_tiny", "window", None),
        (
            "layer_aggregation_iterative_tiny",
            "num_layers",
            "num_encoder_layers",
        ),
        ("surface_fusion_hard_tiny", "positions", None),
    ],
)
def test_an_option_that_no_layer_has_is_refused_by_name(name, option, nearest):
    said = f"`{option}` is not an argument of {name} or of the layers in its"
    with pytest.raises(ValueError, match=said) as info:
        zoo.create_model(name, 11, 13, **{option: 1})
    if nearest is not None:
        assert f"`{nearest}`" in str(info.value)


def test_an_option_of_a_layer_that_is_overridden_is_refused():
    slots = {"encoder_self_attention": None, "decoder_self_attention": None}
    with pytest.raises(ValueError, match="`window` is not an argument of hyb"):
        arguments_of(
            "hybrid_self_attention_sum_tiny", 11, 13, window=3, **slots
        )


def test_a_layer_that_is_an_override_keeps_its_own_options():
    layer = HybridSelfAttention(4, attention_dropout=0.1)
    found = arguments_of(
        "hybrid_self_attention_sum_tiny",
        *(11, 13),
        encoder_self_attention=layer,
        attention_dropout=0.3,
    )
    assert found["encoder_self_attention"] is layer


def test_embeddings_are_dropped_as_often_with_roles_as_without():
    for name in zoo.list_models("role_interaction_*") + ["everything_tiny"]:
        found = arguments_of(name, 13, 13, dropout=0.25)
        for side in ("source", "target"):
            layer = found.get(f"{side}_embedding_layer")
            if layer is not None:  # not a baseline
                # The model drops the embeddings, in both.
                assert (layer.token_dropout, layer.dropout) == (0, 0.25), name


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
