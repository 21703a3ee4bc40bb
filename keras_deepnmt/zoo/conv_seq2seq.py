"""Presets of Shen et al. (2018): convolutional models, residual and dense.

A size is named after the number of layers in each stack. With `embed_64`
embeddings have width 64, otherwise the width of the attention. `15l` is the
WMT14 model.
"""

from keras_deepnmt.models.conv_seq2seq import ConvSeq2Seq
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant


def tiny(source_vocabulary_size, target_vocabulary_size):
    """4 + 4 layers of width 128, for Multi30k."""
    return dict(
        hidden_dim=128,
        growth_dim=64,
        num_encoder_layers=4,
        num_decoder_layers=4,
        dropout=0.3,
    )


def four_layers(source_vocabulary_size, target_vocabulary_size):
    """4 + 4 layers of width 256, as used on IWSLT14."""
    return dict(
        hidden_dim=256,
        growth_dim=128,
        num_encoder_layers=4,
        num_decoder_layers=4,
        dropout=0.2,
    )


def eight_layers(source_vocabulary_size, target_vocabulary_size):
    """8 + 8 layers of width 192; layer 6 of a dense stack is a summary."""
    return dict(
        hidden_dim=192,
        growth_dim=96,
        attention_dim=256,
        num_encoder_layers=8,
        num_decoder_layers=8,
        summary_length=6,
        dropout=0.2,
    )


def fifteen_layers(source_vocabulary_size, target_vocabulary_size):
    """15 + 15 layers of widths 512 to 2048, as used on WMT14."""
    return dict(
        hidden_dim=[512] * 10 + [1024] * 3 + [2048] * 2,
        growth_dim=[128] * 10 + [256] * 3 + [512] * 2,
        kernel_size=[3] * 13 + [1] * 2,
        attention_dim=768,
        num_encoder_layers=15,
        num_decoder_layers=15,
        summary_length=6,
        dropout=0.1,
    )


def _with_embeddings(size, embedding_dim):
    def arguments(source_vocabulary_size, target_vocabulary_size):
        plain = size(source_vocabulary_size, target_vocabulary_size)
        # Only the embeddings change: the attention keeps the size's width.
        plain.setdefault("attention_dim", plain["hidden_dim"])
        return {**plain, "embedding_dim": embedding_dim}

    return arguments


FOUR_LAYERS = {"tiny": tiny, "4l": four_layers}
SIZES = {
    **FOUR_LAYERS,
    "4l_embed_64": _with_embeddings(four_layers, 64),
    "4l_embed_128": _with_embeddings(four_layers, 128),
    "8l": eight_layers,
    "8l_embed_64": _with_embeddings(eight_layers, 64),
    "8l_embed_128": _with_embeddings(eight_layers, 128),
    "15l": fifteen_layers,
}
PAPER = "Shen et al. (2018)"


@register_variant(ConvSeq2Seq, SIZES, "Gehring et al. (2017)")
def conv_seq2seq(arguments):
    """Residual connections: the baseline."""
    return {}


@register_variant(ConvSeq2Seq, SIZES, PAPER)
def dense_nmt_1(arguments):
    """Dense connections, and one attention to all encoder layers together."""
    return {"encoder_connection": "dense", "decoder_connection": "dense"}


@register_variant(ConvSeq2Seq, SIZES, PAPER)
def dense_nmt_2(arguments):
    """Dense connections, and a separate attention to each encoder layer."""
    return {
        "encoder_connection": "dense",
        "decoder_connection": "dense",
        "attention": "per_layer",
    }


@register_variant(ConvSeq2Seq, FOUR_LAYERS, PAPER)
def dense_encoder(arguments):
    """Dense connections in the encoder only."""
    return {"encoder_connection": "dense"}


@register_variant(ConvSeq2Seq, FOUR_LAYERS, PAPER)
def dense_decoder(arguments):
    """Dense connections in the decoder only."""
    return {"decoder_connection": "dense"}


@register_variant(ConvSeq2Seq, FOUR_LAYERS, PAPER)
def dense_attention(arguments):
    """Residual connections, and a separate attention to each encoder layer."""
    return {"attention": "per_layer"}


_FOUR = dict(
    hidden_dim=256,
    growth_dim=128,
    num_encoder_layers=4,
    num_decoder_layers=4,
    summary_length=None,
    dropout=0.2,
)
_EIGHT = dict(
    hidden_dim=192,
    growth_dim=96,
    attention_dim=256,
    num_encoder_layers=8,
    num_decoder_layers=8,
    summary_length=6,
    dropout=0.2,
)
_DIMENSIONS = {
    # Ours, for small corpora.
    "tiny": dict(
        hidden_dim=128,
        growth_dim=64,
        num_encoder_layers=4,
        num_decoder_layers=4,
        dropout=0.3,
    ),
    "4l": _FOUR,
    "4l_embed_64": dict(_FOUR, attention_dim=256, embedding_dim=64),
    "4l_embed_128": dict(_FOUR, attention_dim=256, embedding_dim=128),
    "8l": _EIGHT,
    "8l_embed_64": dict(_EIGHT, embedding_dim=64),
    "8l_embed_128": dict(_EIGHT, embedding_dim=128),
    "15l": dict(
        hidden_dim=[512] * 10 + [1024] * 3 + [2048] * 2,
        growth_dim=[128] * 10 + [256] * 3 + [512] * 2,
        attention_dim=768,
        num_encoder_layers=15,
        num_decoder_layers=15,
        summary_length=6,
        dropout=0.1,
    ),
}
describe_paper(
    "Gehring et al. (2017)",
    title="Convolutional Sequence to Sequence Learning",
    links="[Gehring et al., 2017](https://arxiv.org/abs/1705.03122) (ConvS2S)",
    changes="convolutions instead of self-attention",
    presets="`conv_seq2seq_*`",
    embeddings="two, and one for the output",
    dimensions=_DIMENSIONS,
)
describe_paper(
    PAPER,
    title="Dense Information Flow for Neural Machine Translation",
    links="[Shen et al., 2018](https://arxiv.org/abs/1806.00722) (DenseNMT)",
    changes="dense connections between the layers of a convolutional model",
    presets="`dense_nmt_1_*`, `dense_nmt_2_*`, "
    "`dense_{encoder,decoder,attention}_*`",
    baseline="`conv_seq2seq_*`",
    embeddings="two, and one for the output",
    dimensions=_DIMENSIONS,
)
