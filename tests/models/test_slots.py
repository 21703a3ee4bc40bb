"""What must be true of a model with the papers' layers in its slots: layers
that do nothing leave the plain model, each is called with what its paper says,
and parameters grow as published."""

import functools

import keras
import numpy as np
import pytest
from paper_slots import one_choice

from keras_deepnmt.layers import (
    FineGrainedLayerAttention,
    HybridSelfAttention,
    LayerAggregation,
    LayerDiversity,
    MultiHeadAttention,
    MultiLayerAttention,
    SurfaceFusion,
)
from keras_deepnmt.models import Transformer
from keras_deepnmt.training import copy_shared_weights
from keras_deepnmt.zoo import create_model

V, D, F, N, L = 13, 8, 16, 2, 3
INPUTS = {
    "source_ids": np.array([[5, 6, 7, 5, 3], [8, 9, 3, 0, 0]], "int32"),
    "target_ids": np.array([[2, 7, 8], [2, 9, 0]], "int32"),
}


def transformer(num_layers=L, **options):
    return Transformer(V, V, D, F, N, num_layers, num_layers, **options)


def scores(model):
    return np.asarray(model.log_probs(model(INPUTS)))


class Recorder(keras.layers.Layer):
    """Encoder fusion that passes on one state, and keeps all its inputs."""

    def __init__(self, chosen=-1, **kwargs):
        super().__init__(**kwargs)
        self.chosen = chosen

    def call(self, layer_states):
        return [layer_states[self.chosen]] * L

    def get_config(self):
        return {**super().get_config(), "chosen": self.chosen}


def state(number, **options):
    """The encoder's state of that number, and a way to move weights."""
    with keras.saving.custom_object_scope({"Recorder": Recorder}):
        model = transformer(encoder_fusion=Recorder(number), **options)

    def read():
        memory = model.encode(INPUTS["source_ids"])
        return np.asarray(memory["fused"]["decoder_block_1"])

    return model, read


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "slots",
    [
        {
            "encoder_self_attention": HybridSelfAttention(
                N, ("global",), fusion="sum"
            )
        },
        {"encoder_self_attention": MultiLayerAttention(N, num_layers=1)},
        {"decoder_cross_attention": MultiHeadAttention(N)},
        {"output_fusion": SurfaceFusion("hard", weight=1.0)},
        {"output_fusion": SurfaceFusion("soft", temperature=1e9)},
        {"layer_diversity": 1.0},
        {"encoder_fusion": Recorder(-1)},
    ],
    ids=lambda slots: next(iter(slots.values())).__class__.__name__,
)
def test_a_layer_that_does_nothing_leaves_the_plain_model(slots):
    with keras.saving.custom_object_scope({"Recorder": Recorder}):
        model = transformer(**slots)
    plain = transformer()
    assert copy_shared_weights(model, plain).fresh == {}
    np.testing.assert_allclose(scores(model), scores(plain), atol=1e-5)


def test_the_first_state_is_the_scaled_embedding_without_positions():
    model, first = state(0)
    table = model.source_embedding.weights[0].numpy()
    expected = D**0.5 * table[INPUTS["source_ids"]]
    np.testing.assert_allclose(first(), expected, rtol=1e-6)


def test_embedding_and_encoder_input_lose_the_same_places():
    model, _ = state(0, dropout=0.5, position_encoding=None)
    embeddings = keras.Model(
        model.input, model.get_layer("source_dropout").output
    )
    with_positions, without = embeddings(INPUTS, training=True)
    np.testing.assert_array_equal(with_positions, without)
    assert np.any(np.asarray(without) == 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("strategy", "moved"),
    # Feedback reaches block 3; a chain stands beside the stack.
    [("hierarchical", [False, False, True]), ("iterative", [False] * 3)],
)
def test_what_a_node_changes_in_the_stack(strategy, moved):
    layer = LayerAggregation(strategy, dropout=0.0)
    found = []
    for number in (1, 2, 3):
        # A fourth block, so that the third's output is not a stack's output.
        with keras.saving.custom_object_scope({"Recorder": Recorder}):
            model = Transformer(
                *(V, V, D, F, N, 4, L),
                encoder_fusion=Recorder(number),
                encoder_aggregation=layer,
            )
        before = model.encode(INPUTS["source_ids"])["fused"]["decoder_block_1"]
        node = model.encoder_aggregation.nodes[0]
        node.set_weights([weight + 0.5 for weight in node.get_weights()])
        after = model.encode(INPUTS["source_ids"])["fused"]["decoder_block_1"]
        found.append(not np.allclose(before, after, atol=1e-6))
    assert found == moved


def encoder_input(model):
    """A sentence without padding, and what the first block reads of it."""
    source_ids = INPUTS["source_ids"][:1]
    x = model.embedding_scale(model.source_embedding(source_ids))
    return source_ids, model.position_encoding(x)


def test_a_tree_reads_the_states_and_the_node_below():
    model = Transformer(
        *(V, V, D, F, N, 4, 1),
        encoder_aggregation=LayerAggregation("hierarchical", dropout=0.0),
    )
    source_ids, x = encoder_input(model)
    blocks, nodes = model.encoder_blocks, model.encoder_aggregation.nodes
    h1 = blocks[0](x)
    h2 = blocks[1](h1)
    a1 = nodes[0]([h1, h2])
    h3 = blocks[2](a1)
    h4 = blocks[3](h3)
    a2 = nodes[1]([h3, h4, a1])
    output = model.encode(source_ids)["output"]
    np.testing.assert_allclose(output, a2, atol=1e-5)


def test_a_block_reads_the_states_below_it_newest_first():
    model = Transformer(
        *(V, V, D, F, N, 4, 1),
        encoder_self_attention=MultiLayerAttention(N, 3, dropout=0.0),
    )
    source_ids, x = encoder_input(model)
    blocks = model.encoder_blocks
    h1 = blocks[0](x)
    h2 = blocks[1](h1)
    h3 = blocks[2](h2)
    h4 = blocks[3](h3, layer_states=[h2, h1])
    output = model.encode(source_ids)["output"]
    np.testing.assert_allclose(output, h4, atol=1e-5)


def test_dense_connection_without_blocks_doubles():
    # H^l = LAYER(H^(l-1)) + H^1 + ... + H^(l-1), with LAYER = 0 for l > 1.
    layer = LayerAggregation("dense", num_layers=6)
    first, given = np.ones((1, 2, D), "float32"), []
    for number in range(1, 7):
        outputs = [first, *[np.zeros_like(first)] * (number - 1)]
        given.append(layer(outputs, previous=given))
    assert [float(np.mean(state)) for state in given] == [1, 1, 2, 4, 8, 16]


def test_lower_layers_are_blocks_not_the_embedding():
    model = transformer(
        5, encoder_self_attention=MultiLayerAttention(N, num_layers=2)
    )
    kinds = [type(block.attention).__name__ for block in model.encoder_blocks]
    assert kinds == ["MultiHeadAttention"] * 2 + ["MultiLayerAttention"] * 3


def test_a_number_is_the_weight_of_the_diversity_of_both_stacks():
    numbered, layered = (
        transformer(layer_diversity=value)
        for value in (0.5, LayerDiversity(0.5))
    )
    layered.set_weights(numbered.get_weights())
    losses = []
    for model in (numbered, layered):
        model(INPUTS)
        losses.append([float(loss) for loss in model.losses])
    assert losses[0] == losses[1]
    # Sums over real positions, 8 of the source and 5 of the target: at most
    # the weight at each, and below zero, since diversity is rewarded.
    for loss, positions in zip(losses[0], (8, 5), strict=True):
        assert -0.5 * positions <= loss < 0


@pytest.mark.thorough
def test_without_positions_only_hybrid_attention_sees_the_order():
    source = INPUTS["source_ids"][:1]
    order = [2, 0, 3, 1, 4]
    for attention, sees in (
        (None, False),
        (HybridSelfAttention(N, ("global",), fusion="sum"), False),
        (HybridSelfAttention(N, ("global", "forward"), fusion="sum"), True),
        (HybridSelfAttention(N, fusion="gated_sum", gate_reduction=4), True),
    ):
        model = transformer(
            encoder_self_attention=attention, position_encoding=None
        )
        output, permuted = (
            np.asarray(model.encode(ids)["output"])
            for ids in (source, source[:, order])
        )
        assert np.allclose(output[:, order], permuted, atol=1e-5) != sees


@pytest.fixture(scope="module")
def kernels():
    """`kernels(preset)`: the number of weights in its matrices."""

    @functools.cache
    def count(preset):
        # In units of D^2, for 6 + 6 layers and F = 4 D.
        sizes = dict(hidden_dim=32, intermediate_dim=128, num_heads=2)
        return num_in_matrices(create_model(preset, V, V, **sizes))

    return count


def num_in_matrices(model):
    return sum(
        int(np.prod(weight.shape))
        for weight in model.weights
        if len(weight.shape) > 1
    )


@pytest.mark.parametrize(
    ("preset", "squares"),
    [
        ("layer_aggregation_hierarchical_base", 88),
        ("multi_layer_attention_k3_base", 144),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in (
                ("layer_aggregation_dense_base", 0),
                ("layer_aggregation_linear_base", 12),
                ("layer_aggregation_linear_feed_forward_base", 56),
                ("layer_aggregation_iterative_base", 120),
                ("layer_aggregation_hierarchical_encoder_base", 44),
                ("multi_layer_attention_k2_base", 128),
                ("hybrid_self_attention_sum_base", 0),
                ("hybrid_self_attention_concat_base", 24),
                ("hybrid_self_attention_gated_base", 1.5),
            )
        ),
    ],
)
def test_weights_grow_as_published(kernels, preset, squares):
    paper = "hybrid_self_attention"
    if not preset.startswith(paper):
        paper = "layer_aggregation"  # Dou et al. (2018), two kinds of layers
    plain = kernels(f"{paper}_baseline_base")
    assert kernels(preset) - plain == squares * 32**2


def test_fine_grained_attention_has_a_weight_for_each_block_state_and_channel():
    sizes = dict(hidden_dim=8, intermediate_dim=16, num_heads=2)
    model, plain = (
        create_model(name, V, V, **sizes)
        for name in ("fine_grained_layer_attention_base", "transformer_base")
    )
    extra = model.count_params() - plain.count_params()
    assert extra == 6 * 7 * 8
    assert extra * 512 // 8 == 21_504


def test_an_option_reduction_that_is_no_sum_of_losses_is_left_alone():
    class Scale(keras.layers.Layer):
        def __init__(self, reduction=4, **kwargs):
            super().__init__(**kwargs)
            self.reduction = reduction

        def call(self, inputs, padding_mask=None):
            return inputs / self.reduction

        def get_config(self):
            return {**super().get_config(), "reduction": self.reduction}

    scope = keras.saving.custom_object_scope({"Scale": Scale})
    with scope:
        model = transformer(1, source_embedding_layer=Scale(reduction=8))
    assert model.source_embedding_layer.reduction == 8


def test_every_slot_is_used_once_for_each_block_or_side():
    model = transformer(**one_choice())
    assert isinstance(model.encoder_blocks[0].attention, HybridSelfAttention)
    assert isinstance(model.encoder_blocks[2].attention, MultiLayerAttention)
    assert not isinstance(
        model.decoder_blocks[2].cross_attention, MultiLayerAttention
    )
    assert isinstance(
        model.decoder_blocks[0].cross_attention, MultiHeadAttention
    )
    assert isinstance(model.encoder_fusion, FineGrainedLayerAttention)
    assert model.encoder_aggregation is not model.decoder_aggregation
