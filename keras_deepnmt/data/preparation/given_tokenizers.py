"""Compares the options of tokenizer training with a tokenizer that is given."""

import dataclasses

from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import (
    required_characters,
)
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

_TYPES = {
    model_pb2.TrainerSpec.BPE: "bpe",
    model_pb2.TrainerSpec.UNIGRAM: "unigram",
}


def check_given_tokenizer(options: PrepareOptions, tokenizer: Tokenizer):
    """Refuses options by which a given tokenizer would cut a text otherwise."""
    model = model_pb2.ModelProto.FromString(tokenizer.proto)
    pieces = {piece.piece for piece in model.pieces}
    byte = model_pb2.ModelProto.SentencePiece.BYTE
    has_bytes = any(piece.type == byte for piece in model.pieces)
    symbols = set(options.all_user_defined_symbols())
    rule = tokenizer.normalization
    characters = set(required_characters(options.required_chars or "", rule))
    # Those of the steps, which a given tokenizer has in pieces of any form.
    characters -= set(required_characters("", rule))
    missing = {
        "user_defined_symbols": symbols - set(tokenizer.user_defined_symbols),
        "required_chars": characters - {*pieces, " "},
    }
    lacks = {
        name: f"has not {' '.join(sorted(texts))}"
        for name, texts in missing.items()
        if texts
    }
    if options.split_digits and not model.trainer_spec.split_digits:
        lacks["split_digits"] = "does not split digits"
    if options.byte_fallback and not has_bytes:
        lacks["byte_fallback"] = "has no pieces for bytes"
    for name, fault in lacks.items():
        raise UserError(
            f"`{name}` must be left out with a given tokenizer, whose file "
            f"says how a text is cut. Received: {name} and "
            f"{tokenizer.model_file}, which {fault}."
        )


def options_without_effect(
    options: PrepareOptions, tokenizer: Tokenizer
) -> str | None:
    """Names the options that a given tokenizer makes useless, in a sentence.

    They are those that differ from their defaults, and from what the tokenizer
    is. Without such options it is `None`.
    """
    spec = model_pb2.ModelProto.FromString(tokenizer.proto).trainer_spec
    own = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "model_type": _TYPES.get(spec.model_type, "another"),
    }
    if not options.extend_vocabulary:  # new pieces are learned by these
        own |= {"character_coverage": None, "tokenizer_sentences": None}
    defaults = {
        field.name: field.default for field in dataclasses.fields(options)
    }
    found = []
    for name, is_now in own.items():
        value = getattr(options, name)
        if value not in (defaults[name], is_now):
            instead = "" if is_now is None else f" (it has {is_now})"
            found.append(f"{name}={value}{instead}")
    if not found:
        return None
    return (
        f"{tokenizer.model_file} is given, so these options have no effect: "
        f"{', '.join(found)}."
    )
