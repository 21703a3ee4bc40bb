"""What must be true of weights taken over from another model.

* those that are the same part and have the same shape become equal, all others
  stay
* every weight of a plain model has its place in the model of every paper
* the report counts every weight of both models once
"""

import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt import create_model
from keras_deepnmt.layers import ContextualizedEmbedding, RoleInteraction
from keras_deepnmt.models import Transformer
from keras_deepnmt.training.transfer import copy_shared_weights

H = 8


def values(model):
    return {w.path: w.numpy() for w in model.weights}


def test_same_paths_and_shapes_are_shared_and_the_rest_stays():
    source = Transformer(11, 13, H, 16, 2, 1, 2)
    target = Transformer(11, 17, H, 16, 2, 2, 1)
    theirs, before = values(source), values(target)
    # A bias begins at zero in both: equal by chance, were it not changed.
    for weight in source.weights:
        weight.assign_add(np.ones(weight.shape, "float32"))
    theirs = values(source)
    report = copy_shared_weights(source, target)
    table = "target_embedding/embeddings"
    for path, value in values(target).items():
        shared = path in theirs and path != table
        expected = theirs[path] if shared else before[path]
        np.testing.assert_array_equal(value, expected, err_msg=path)
        assert (path in report.shared) == shared
        assert (path in report.fresh) == (not shared)
    assert report.mismatched == {table: ((13, H), (17, H))}
    assert sum(report.shared.values()) + sum(report.fresh.values()) == (
        target.count_params()
    )
    assert sum(report.shared.values()) + sum(report.unused.values()) == (
        source.count_params()
    )


def test_the_report_names_numbers_and_shapes():
    source = Transformer(11, 13, H, 16, 2, 1, 1)
    target = Transformer(11, 17, H, 16, 2, 1, 1)
    said = copy_shared_weights(source, target).describe()
    assert "fresh 1 weights (136 parameters), unused 1 weights (104" in said
    assert "target_embedding/embeddings is fresh: its shape is (17, 8)" in said


PRESETS_OF_SLOTS = {
    "encoder_self_attention": "hybrid_self_attention_concat_tiny",
    "decoder_self_attention": "hybrid_self_attention_gated_decoder_tiny",
    "both aggregations": "layer_aggregation_hierarchical_attention_tiny",
    "encoder_fusion": "fine_grained_layer_attention_tiny",
    "output_fusion": "surface_fusion_hard_tiny",
    "both embedding layers": "role_interaction_softmax_tiny",
    "both self-attentions, layer_diversity": (
        "multi_layer_attention_k2_diversity_tiny"
    ),
    "all slots": "everything_tiny",
}


def preset(name, sizes=(11, 13), **overrides):
    """A preset of three blocks a stack: the third reads two lower ones."""
    return create_model(
        name,
        *sizes,
        hidden_dim=H,
        intermediate_dim=16,
        num_heads=2,
        num_encoder_layers=3,
        num_decoder_layers=3,
        **overrides,
    )


@pytest.fixture(scope="module")
def trained():
    model = preset("transformer_tiny")
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    return model


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", PRESETS_OF_SLOTS.values(), ids=PRESETS_OF_SLOTS
)
def test_every_weight_of_a_plain_model_has_its_place_in_every_paper(
    trained, name
):
    target = preset(name)
    report = copy_shared_weights(trained, target)
    assert report.unused == report.mismatched == {}
    assert sum(report.shared.values()) == trained.count_params()
    for side in ("encoder_blocks", "decoder_blocks"):
        blocks = zip(getattr(trained, side), getattr(target, side), strict=True)
        for plain, block in blocks:
            # Of several attentions the first is that to the layer just below.
            attentions = getattr(block.attention, "attentions", None)
            nearest = attentions[0] if attentions else block.attention
            for projection in ("query", "key", "value", "output"):
                np.testing.assert_array_equal(
                    getattr(nearest, f"{projection}_projection").kernel,
                    getattr(plain.attention, f"{projection}_projection").kernel,
                    err_msg=f"{block.name}, {projection}",
                )


@pytest.mark.thorough
def test_a_plain_model_takes_the_nearest_of_several_attentions():
    source = preset("multi_layer_attention_k2_tiny")
    target = preset("transformer_tiny")
    report = copy_shared_weights(source, target)
    assert report.fresh == {}
    assert {path.split("/")[2] for path in report.unused} == {
        "lower_2",
        "node",
    }


def test_one_matrix_gives_its_values_to_separate_ones():
    source = preset("transformer_tiny", (13, 13))
    target = preset("transformer_tiny", (13, 13), share_embeddings=False)
    report = copy_shared_weights(source, target)
    assert report.fresh == report.unused == {}
    for embedding in (target.source_embedding, target.target_embedding):
        np.testing.assert_array_equal(
            embedding.embeddings, source.source_embedding.embeddings
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "added",
    [
        {"layer_diversity": 0.5},
        {
            "source_embedding_layer": ContextualizedEmbedding(
                3, output_initializer="zeros"
            )
        },
        {
            "source_embedding_layer": RoleInteraction(
                3, "softmax", output_initializer="zeros"
            ),
            "target_embedding_layer": RoleInteraction(
                3,
                bidirectional=False,
                rank_one=True,
                output_initializer="zeros",
            ),
        },
    ],
    ids=["loss", "added_roles", "role_interaction"],
)
def test_a_layer_that_begins_at_zero_changes_no_logit(added):
    plain = Transformer(11, 13, H, 16, 2, 2, 2)
    config = plain.get_config()
    model = Transformer(**{**config, **added})
    report = copy_shared_weights(plain, model)
    assert not report.unused
    ids = {
        "source_ids": np.array([[5, 6, 7, 3], [9, 3, 0, 0]]),
        "target_ids": np.array([[2, 4, 8], [2, 5, 0]]),
    }
    np.testing.assert_array_equal(model(ids), plain(ids))
    # What begins at zero has a gradient, so that it learns.
    zeros = [
        weight.value
        for weight in model.trainable_weights
        if "kernel" in weight.path and not np.any(weight)
    ]
    assert len(zeros) == len(added) - ("layer_diversity" in added)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(ids, training=True) ** 2)
    for gradient in tape.gradient(loss, zeros):
        assert np.any(gradient)
