"""Presets of Weissenborn et al. (2019): words that interact with their roles.

All have 32 roles and, unless the name says otherwise, a full interaction
tensor, a residual connection and LSTM role encoders. Embeddings are dropped
once, by the model, as in the baseline; the paper does not say whether they are
shared.
"""

from keras_deepnmt.layers.contextualized_embedding import (
    ContextualizedEmbedding,
)
from keras_deepnmt.layers.role_interaction import RoleInteraction
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import base, big, changed, tiny

NUM_ROLES = 32


def small(source_vocabulary_size, target_vocabulary_size):
    """3 + 3 layers of width 256, as used on IWSLT14 by the paper."""
    return dict(
        hidden_dim=256,
        intermediate_dim=512,
        num_heads=4,
        num_encoder_layers=3,
        num_decoder_layers=3,
        dropout=0.3,
    )


# The paper has the same dropout in all models.
_OPTIONS = {"dropout": 0.3, "share_embeddings": False}
BIG_SIZES = {
    "small": small,
    "base": changed(base, **_OPTIONS),
    "big": changed(big, **_OPTIONS),
}
SIZES = {"tiny": tiny, "small": small}
ALL_SIZES = {**SIZES, **BIG_SIZES}
PAPER = "Weissenborn et al. (2019)"
_register = register_variant(Transformer, SIZES, PAPER)
_register_all = register_variant(Transformer, ALL_SIZES, PAPER)


def both_sides(layer, arguments, **options):
    """Fills the embedding slots of source and target with a role layer.

    On the target side roles do not depend on later words.
    """
    options["dropout"] = arguments["dropout"]
    options["token_dropout"] = 0.0
    return {
        "source_embedding_layer": layer(NUM_ROLES, **options),
        "target_embedding_layer": layer(
            NUM_ROLES, bidirectional=False, **options
        ),
    }


def _roles(arguments, assignment, **options):
    return both_sides(
        RoleInteraction, arguments, assignment=assignment, **options
    )


@register_variant(Transformer, BIG_SIZES, PAPER, variant="transformer")
def role_interaction_baseline(arguments):
    """The plain Transformer that the paper compares with, without roles."""
    return {}


@_register_all
def role_interaction_dense(arguments):
    """Dense roles (activations) that interact with the word."""
    return _roles(arguments, "dense")


@_register_all
def role_interaction_dense_no_residual(arguments):
    """Dense roles, without a residual connection."""
    return _roles(arguments, "dense", residual=False)


@_register
def role_interaction_dense_rank_one(arguments):
    """Dense roles that interact through a rank-one tensor."""
    return _roles(arguments, "dense", rank_one=True)


@_register
def role_interaction_dense_cnn(arguments):
    """Dense roles from a convolution over seven words."""
    return _roles(arguments, "dense", role_encoder="cnn")


@_register_all
def role_interaction_softmax(arguments):
    """Softmax roles (a distribution) that interact with the word."""
    return _roles(arguments, "softmax")


@_register_all
def role_interaction_softmax_no_residual(arguments):
    """Softmax roles, without a residual connection."""
    return _roles(arguments, "softmax", residual=False)


@_register
def role_interaction_softmax_rank_one(arguments):
    """Softmax roles that interact through a rank-one tensor."""
    return _roles(arguments, "softmax", rank_one=True)


@_register
def role_interaction_softmax_cnn(arguments):
    """Softmax roles from a convolution over seven words."""
    return _roles(arguments, "softmax", role_encoder="cnn")


@_register
def role_interaction_onehot(arguments):
    """One-hot roles (one per word) that interact with the word."""
    return _roles(arguments, "onehot")


@_register
def role_interaction_onehot_no_residual(arguments):
    """One-hot roles, without a residual connection."""
    return _roles(arguments, "onehot", residual=False)


@_register
def role_interaction_onehot_rank_one(arguments):
    """One-hot roles that interact through a rank-one tensor."""
    return _roles(arguments, "onehot", rank_one=True)


@_register
def role_interaction_onehot_cnn(arguments):
    """One-hot roles from a convolution over seven words."""
    return _roles(arguments, "onehot", role_encoder="cnn")


@_register
def contextualized_embedding(arguments):
    """Adds roles to the word's embedding: the baseline without interaction."""
    return both_sides(ContextualizedEmbedding, arguments)


describe_paper(
    PAPER,
    title="Contextualized Role Interaction for Neural Machine Translation",
    links="[Weissenborn et al., 2019]"
    "(https://openreview.net/forum?id=ryx3_iAcY7) (RIL)",
    changes="transforms each word embedding by its role in the sentence",
    presets="`role_interaction_*`, `contextualized_embedding_*`",
    baseline="`role_interaction_baseline_*`, `transformer_*_matched`",
    embeddings="one matrix a side; the paper does not say",
    # Section "Models". Dropout is 0.3 in all.
    dimensions={
        "small": dict(
            hidden_dim=256,
            intermediate_dim=512,
            num_heads=4,
            num_encoder_layers=3,
            num_decoder_layers=3,
            dropout=0.3,
        ),
        "base": dict(
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
            num_encoder_layers=6,
            num_decoder_layers=6,
            dropout=0.3,
        ),
        "big": dict(
            hidden_dim=1024,
            intermediate_dim=4096,
            num_heads=16,
            num_encoder_layers=6,
            num_decoder_layers=6,
            dropout=0.3,
        ),
    },
)
