"""How a tokenizer cuts the pieces of another one."""

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.tokenizers import Tokenizer


def cut_new_pieces(old: Tokenizer, new: Tokenizer) -> list[np.ndarray]:
    """Returns the ids that new pieces had before a vocabulary grew.

    They are those that `old` gives for the characters of a piece within a word:
    of a character that it does not know, the unknown token or its bytes.

    Args:
        old: The tokenizer before.
        new: The one after, whose first pieces are those of `old`.

    Returns:
        One int32 array of ids of `old` for each further piece of `new`.

    Raises:
        ValueError: if `new` does not begin with the pieces of `old`.

    Example:
    >>> from keras_deepnmt.data import train_tokenizer
    >>> tokenizer = train_tokenizer(["ein Hund"] * 5, "de.model", 14)
    >>> cut_new_pieces(tokenizer, tokenizer)
    []
    """
    size = old.vocabulary_size
    shared = range(min(size, new.vocabulary_size))
    if new.vocabulary_size < size or old.pieces(shared) != new.pieces(shared):
        raise ValueError(
            "`new` must begin with the pieces of `old`. Received: "
            f"new={new.model_file}, old={old.model_file}"
        )
    model = model_pb2.ModelProto.FromString(old.proto)
    spec = model.normalizer_spec
    spec.Clear()
    # A piece is text that was normalized already, and has its spaces as marks.
    spec.add_dummy_prefix = False
    spec.remove_extra_whitespaces = False
    spec.escape_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=model.SerializeToString()
    )
    pieces = new.pieces(range(size, new.vocabulary_size))
    return [np.array(processor.encode(piece), "int32") for piece in pieces]
