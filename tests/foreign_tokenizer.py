"""Models that SentencePiece alone trained, as other programs do."""

import io

import sentencepiece

from keras_deepnmt.data.tokenizers import Tokenizer

OUR_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}


def write_foreign_model(texts, file, **options):
    """Trains a BPE model with options of SentencePiece and writes its file."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        **{"model_type": "bpe", "minloglevel": 2, **options},
    )
    file.write_bytes(model.getvalue())


def foreign_tokenizer(texts, file, **options):
    """The tokenizer of such a model, which has the ids of this package."""
    write_foreign_model(texts, file, **OUR_IDS, **options)
    return Tokenizer(file)
