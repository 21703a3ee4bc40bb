"""Models that SentencePiece alone trained, and those of other toolkits."""

import io

import sentencepiece

from keras_deepnmt.data.model_files import with_begin_symbol, with_vocabulary
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.exchange.vocabulary import with_tags

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


def imported_tokenizer(plain, file, tags, begin=None):
    """A tokenizer with tags, and a begin token, as imports have them."""
    pieces = [*plain.pieces(range(plain.vocabulary_size)), *tags]
    if begin:
        pieces.append(begin)
    proto = with_vocabulary(*with_tags(plain.proto, pieces))
    file.write_bytes(with_begin_symbol(proto, begin, file) if begin else proto)
    return Tokenizer(file)
