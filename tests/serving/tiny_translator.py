"""A tiny translator that has memorized a few sentences."""

import random

import keras
import numpy as np

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.translator import Translator

NOUNS = {
    "Hund": "dog",
    "Mann": "man",
    "Baum": "tree",
    "Löwe": "lion",
    "Fünfer": "fiver",
}
VERBS = {"sieht": "sees", "ruft": "calls", "malt": "paints"}

ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}
DIMENSIONS = {
    Transformer: {"intermediate_dim": 48, "num_heads": 2, **ONE_LAYER},
    ConvSeq2Seq: ONE_LAYER,
}


def all_pairs():
    return [
        (
            f"der {a} {v} den {b} .",
            f"the {NOUNS[a]} {VERBS[v]} the {NOUNS[b]} .",
        )
        for a in NOUNS
        for v in VERBS
        for b in NOUNS
    ]


def make_translator(
    folder,
    *,
    steps=0,
    uppercase=False,
    case="kept",
    pairs=None,
    backbone=Transformer,
    architecture=None,
    **options,
):
    """A seeded model and its tokenizers; with `steps`, fitted to the pairs."""
    pairs = pairs or all_pairs()
    sources, targets = zip(*pairs, strict=True)
    if uppercase:
        sources, targets = (
            [text.upper() for text in texts] for texts in (sources, targets)
        )
    tokenizers = [
        train_tokenizer(
            texts, folder / f"{name}.model", vocabulary_size, case=case
        )
        for name, texts, vocabulary_size in (
            ("source", sources, 60),
            ("target", targets, 50),
        )
    ]
    keras.utils.set_random_seed(7)
    model = backbone(
        *(tokenizer.vocabulary_size for tokenizer in tokenizers),
        **{
            "hidden_dim": 24,
            **DIMENSIONS[backbone],
            "dropout": 0.0,
            "max_length": 64,
            **(architecture or {}),
        },
    )
    if steps:
        fit(model, tokenizers, steps, pairs)
    return Translator(model, *tokenizers, **options)


def fit(model, tokenizers, steps, pairs):
    pairs = list(pairs)
    random.Random(0).shuffle(pairs)
    rows = [
        tokenizer.encode(texts)
        for tokenizer, texts in zip(
            tokenizers, zip(*pairs, strict=True), strict=True
        )
    ]
    source_ids = padded([[*row, 3] for row in rows[0]])
    labels = padded([[*row, 3] for row in rows[1]])
    target_ids = padded([[2, *row] for row in rows[1]])
    # Without XLA: compiling would take longer than the steps.
    model.compile(keras.optimizers.Adam(1e-2), jit_compile=False)
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    model.fit(inputs, labels, batch_size=len(labels), epochs=steps, verbose=0)


def padded(rows):
    length = max(map(len, rows))
    return np.array(
        [[*row, *[0] * (length - len(row))] for row in rows], "int32"
    )


def tagged_translator(folder, symbols, max_length, **options):
    """Makes a translator whose tokenizers have these symbols of both sides."""
    tokenizers = [
        train_tokenizer(texts, folder / side, 60, user_defined_symbols=tags)
        for side, tags, texts in zip(
            ("source", "target"),
            symbols,
            zip(*all_pairs(), strict=True),
            strict=True,
        )
    ]
    keras.utils.set_random_seed(7)
    model = Transformer(
        *(60, 60),
        hidden_dim=24,
        max_length=max_length,
        **DIMENSIONS[Transformer],
    )
    return Translator(
        *(model, *tokenizers), num_beams=2, compiled=False, **options
    )
