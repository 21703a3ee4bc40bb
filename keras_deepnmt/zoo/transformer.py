"""Presets of the plain Transformer (Vaswani et al., 2017, Table 3).

Source, target and output share one matrix, as in that paper, if both
vocabularies have the same size.
"""

from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant


def one_matrix(source_vocabulary_size, target_vocabulary_size):
    """Shares one matrix if the sizes can be those of a joint vocabulary."""
    is_joint = source_vocabulary_size == target_vocabulary_size
    return {"share_embeddings": is_joint}


def tiny(source_vocabulary_size, target_vocabulary_size):
    """4 + 4 layers of width 128 for Multi30k; shared embeddings if possible."""
    return dict(
        hidden_dim=128,
        intermediate_dim=256,
        num_heads=4,
        num_encoder_layers=4,
        num_decoder_layers=4,
        dropout=0.3,
        **one_matrix(source_vocabulary_size, target_vocabulary_size),
    )


def small(source_vocabulary_size, target_vocabulary_size):
    """2 + 2 layers of width 256, as used on IWSLT14 by Song et al. (2018)."""
    return dict(
        hidden_dim=256,
        intermediate_dim=1024,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.1,
        **one_matrix(source_vocabulary_size, target_vocabulary_size),
    )


def base(source_vocabulary_size, target_vocabulary_size):
    """6 + 6 layers of width 512: the base model of the paper."""
    return dict(
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dropout=0.1,
        **one_matrix(source_vocabulary_size, target_vocabulary_size),
    )


def big(source_vocabulary_size, target_vocabulary_size):
    """6 + 6 layers of width 1024: the big model of the paper."""
    return dict(
        hidden_dim=1024,
        intermediate_dim=4096,
        num_heads=16,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dropout=0.3,
        **one_matrix(source_vocabulary_size, target_vocabulary_size),
    )


def changed(size, **arguments):
    """Returns a size with other values of some arguments."""

    def other(source_vocabulary_size, target_vocabulary_size):
        plain = size(source_vocabulary_size, target_vocabulary_size)
        return {**plain, **arguments}

    other.__doc__ = size.__doc__
    return other


SIZES = {"tiny": tiny, "small": small, "base": base, "big": big}


@register_variant(Transformer, SIZES, "Vaswani et al. (2017)")
def transformer(arguments):
    """The plain Transformer."""
    return {}


describe_paper(
    "Vaswani et al. (2017)",
    title="Attention Is All You Need",
    links="[Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)",
    changes="the Transformer itself",
    presets="`transformer_*`",
    dimensions={
        # Ours, for small corpora.
        "tiny": dict(
            hidden_dim=128,
            intermediate_dim=256,
            num_heads=4,
            num_encoder_layers=4,
            num_decoder_layers=4,
            dropout=0.3,
        ),
        # Song et al. (2018), settings: 2 layers of width 256 and 4 heads; the
        # rest is `transformer_small` of tensor2tensor, its toolkit.
        "small": dict(
            hidden_dim=256,
            intermediate_dim=1024,
            num_heads=4,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dropout=0.1,
        ),
        # Table 3.
        "base": dict(
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
            num_encoder_layers=6,
            num_decoder_layers=6,
            dropout=0.1,
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
