"""Presets of the plain Transformer (Vaswani et al., 2017, Table 3)."""

from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.registry import register_variant


def tiny(source_vocabulary_size, target_vocabulary_size):
    """4 + 4 layers of width 128 for Multi30k; shared embeddings if possible."""
    return dict(
        hidden_dim=128,
        intermediate_dim=256,
        num_heads=4,
        num_encoder_layers=4,
        num_decoder_layers=4,
        dropout=0.3,
        share_embeddings=source_vocabulary_size == target_vocabulary_size,
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
    )


SIZES = {"tiny": tiny, "small": small, "base": base, "big": big}


@register_variant(Transformer, SIZES, "Vaswani et al. (2017)")
def transformer(arguments):
    """The plain Transformer."""
    return {}
