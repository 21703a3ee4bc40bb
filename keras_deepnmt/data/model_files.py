"""The bytes of a SentencePiece model: its special ids, steps and rule.

What SentencePiece does not know stands in a field of its own, which other
programs skip: the steps of a text (`steps`) with their options
(`step_options`), and how many of the pieces are the vocabulary
(`vocabulary_size`). A model without this field has no steps, and all
its pieces are the vocabulary.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.factored_case import FactoredCase
from keras_deepnmt.data.merge_codes import MergeOptions
from keras_deepnmt.data.merge_step import MergeStep
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.text_steps import BeginSymbol, DropNull, TextStep
from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import check_form, parse_json
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

SPECIAL_IDS = {
    "pad_id": PADDING_ID,
    "unk_id": UNKNOWN_ID,
    "bos_id": BEGIN_ID,
    "eos_id": END_ID,
}


class _Entries(pydantic.BaseModel, extra="allow"):
    """What the field of this package may hold."""

    steps: list[str] = []
    step_options: dict[str, dict[str, Any]] = {}
    vocabulary_size: int | None = pydantic.Field(None, gt=len(SPECIAL_IDS))


TEXT_STEPS = {
    step.name: step for step in (DropNull, FactoredCase, BeginSymbol, MergeStep)
}
# SentencePiece leaves the numbers from 200 on to others.
_FIELD = 1_000


def reorder_special_ids(proto: bytes, origin: str | Path) -> bytes:
    """Reorders the pieces of a serialized model so that special ids are 0 to 3.

    Segmentation depends on the scores of the pieces, not on their order, so
    only the ids change. A model that already has these ids is returned
    unchanged. Raises a `UserError` that names `origin` if the bytes are not a
    model or a piece that cannot be added is missing.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(proto)
    except RuntimeError:
        processor = None
    if processor is None or not processor.get_piece_size():
        raise UserError(
            f"{origin}: not a SentencePiece model ({len(proto)} bytes). "
            "Give the `.model` file that SentencePiece wrote."
        )
    ids = {
        "pad_id": processor.pad_id(),
        "unk_id": processor.unk_id(),
        "bos_id": processor.bos_id(),
        "eos_id": processor.eos_id(),
    }
    if ids == SPECIAL_IDS:
        return proto
    missing = [name for name in ("bos_id", "eos_id", "unk_id") if ids[name] < 0]
    if missing:
        raise UserError(
            f"{origin}: the tokenizer must have an unknown, a begin and an end "
            f"piece. It lacks: {', '.join(missing)}. Train it with "
            "pad_id=0 unk_id=1 bos_id=2 eos_id=3, or let `prepare` train one."
        )
    return _reorder_pieces(proto, ids)


def _reorder_pieces(proto: bytes, ids: dict[str, int]) -> bytes:
    model = model_pb2.ModelProto.FromString(proto)
    pieces = list(model.pieces)
    if ids["pad_id"] < 0:
        names = {piece.piece for piece in pieces}
        name = next(
            n for n in ("<pad>", "<padding>", "<pad-0>") if n not in names
        )
        padding = model_pb2.ModelProto.SentencePiece(
            piece=name,
            score=0.0,
            type=model_pb2.ModelProto.SentencePiece.CONTROL,
        )
    else:
        padding = pieces[ids["pad_id"]]
    special = [
        padding,
        *(pieces[ids[n]] for n in ("unk_id", "bos_id", "eos_id")),
    ]
    special_ids = set(ids.values())
    rest = [p for number, p in enumerate(pieces) if number not in special_ids]
    new = model_pb2.ModelProto()
    new.CopyFrom(model)
    del new.pieces[:]
    new.pieces.extend([*special, *rest])
    for name, value in SPECIAL_IDS.items():
        setattr(new.trainer_spec, name, value)
    new.trainer_spec.pad_piece = padding.piece
    new.trainer_spec.vocab_size = len(new.pieces)
    return new.SerializeToString(deterministic=True)


def with_normalization(proto: bytes, normalization: Normalization) -> bytes:
    """Returns a serialized model with another rule and other steps."""
    model = model_pb2.ModelProto.FromString(proto)
    model.normalizer_spec.CopyFrom(normalization.spec)
    names = [step.name for step in normalization.steps]
    entries = _own_entries(model).model_copy(update={"steps": names})
    return _with_entries(model, entries)


def with_vocabulary(proto: bytes, pieces: Sequence[str]) -> bytes:
    """Returns a serialized model whose ids are places in a list of pieces.

    Text is cut as before. A piece of the list that the model lacks is cut out
    of a text only if it is a character, which was an unknown token before; it
    has its text when ids are joined. A piece of the model that the list lacks
    gets an id after all of these, which is read as the unknown token.

    The first four of `pieces` are the padding, the unknown, the begin and the
    end piece.
    """
    kinds = model_pb2.ModelProto.SentencePiece
    special = (kinds.CONTROL, kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL)
    model = model_pb2.ModelProto.FromString(proto)
    ordinary = {
        piece.piece: piece
        for piece in model.pieces
        if piece.type not in special
    }
    # As unlikely as an unknown character is to SentencePiece.
    lowest = min((p.score for p in ordinary.values()), default=0.0) - 10.0
    ordered = [
        kinds(piece=name, type=kind)
        for name, kind in zip(pieces, special, strict=False)
    ]
    for name in pieces[len(special) :]:
        kind = kinds.NORMAL if len(name) == 1 else kinds.UNUSED
        absent = kinds(piece=name, score=lowest, type=kind)
        ordered.append(ordinary.pop(name, absent))
    names = {piece.piece for piece in ordered}
    ordered += [one for name, one in ordinary.items() if name not in names]
    new = model_pb2.ModelProto()
    new.CopyFrom(model)
    del new.pieces[:]
    new.pieces.extend(ordered)
    for name, value in SPECIAL_IDS.items():
        setattr(new.trainer_spec, name, value)
        piece = name.replace("_id", "_piece")
        setattr(new.trainer_spec, piece, pieces[value])
    new.trainer_spec.vocab_size = len(ordered)
    size = {"vocabulary_size": len(pieces)}
    return _with_entries(new, _own_entries(model).model_copy(update=size))


def with_begin_symbol(proto: bytes, piece: str, origin: str | Path) -> bytes:
    """Returns a serialized model that reads a token before each text.

    The place of `piece` is the place of this token. `origin` names the model in
    errors: a model is refused if its rule about spaces leaves no place for the
    token.
    """
    model = model_pb2.ModelProto.FromString(proto)
    spec, symbol = model.normalizer_spec, BeginSymbol.symbol
    is_suffix = model.trainer_spec.treat_whitespace_as_suffix
    if is_suffix or spec.add_dummy_prefix != spec.remove_extra_whitespaces:
        raise UserError(
            f"{origin}: a begin token of the source cannot be added to a model "
            "with these rules: "
            f"treat_whitespace_as_suffix={is_suffix}, "
            f"add_dummy_prefix={spec.add_dummy_prefix}, "
            f"remove_extra_whitespaces={spec.remove_extra_whitespaces}."
        )
    named = f"▁{symbol}" if spec.add_dummy_prefix else f"{symbol}▁"
    for found in model.pieces:
        if found.piece == piece:
            found.piece = named
            found.type = model_pb2.ModelProto.SentencePiece.USER_DEFINED
    entries = _own_entries(model)
    steps = [*entries.steps, BeginSymbol.name]
    return _with_entries(model, entries.model_copy(update={"steps": steps}))


def with_merges(proto: bytes, options: MergeOptions) -> bytes:
    """Returns a serialized model whose texts are cut by codes of subword-nmt.

    `proto` is of the type `word`.
    """
    model = model_pb2.ModelProto.FromString(proto)
    name = MergeStep.name
    found = {name: options.model_dump(exclude_defaults=True)}
    entries = {"steps": [name], "step_options": found}
    return _with_entries(model, _own_entries(model).model_copy(update=entries))


def size_of_model(proto: bytes, origin: str | Path = "the tokenizer") -> int:
    """Returns how many of the pieces of a model are its vocabulary.

    Raises a `UserError` that names `origin` if its field is damaged.
    """
    model = model_pb2.ModelProto.FromString(proto)
    size = _own_entries(model, origin).vocabulary_size
    return len(model.pieces) if size is None else min(size, len(model.pieces))


def with_all_pieces(model: model_pb2.ModelProto) -> bytes:
    """Returns a serialized model all of whose pieces are the vocabulary."""
    entries = _own_entries(model)
    if entries.vocabulary_size is None:
        return model.SerializeToString(deterministic=True)
    size = {"vocabulary_size": len(model.pieces)}
    return _with_entries(model, entries.model_copy(update=size))


def _with_entries(model, entries):
    model.DiscardUnknownFields()
    content = json.dumps(entries.model_dump(exclude_defaults=True)).encode()
    field = _varint(_FIELD << 3 | 2) + _varint(len(content)) + content
    return model.SerializeToString(deterministic=True) + field


def _own_entries(model, origin="the tokenizer"):
    """Returns what the field of this package holds."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    entries = _Entries()
    for field in UnknownFieldSet(model):
        if field.field_number == _FIELD:
            place = f"{origin}: damaged"
            if not isinstance(field.data, bytes):
                raise UserError(f"{place}: the field of its steps is no text.")
            found = parse_json(field.data, place, _Entries)
            entries = _Entries(**found)
    return entries


def steps_of_model(proto: bytes, origin: str | Path) -> tuple[TextStep, ...]:
    """Returns the steps that a serialized model names.

    Raises a `UserError` that names `origin` if this version lacks a step.
    """
    model = model_pb2.ModelProto.FromString(proto)
    entries = _own_entries(model, origin)
    names, options = entries.steps, entries.step_options
    missing = [name for name in names if name not in TEXT_STEPS]
    if missing:
        raise UserError(
            f"{origin}: a later version of keras_deepnmt made this tokenizer. "
            f"This one does not know what it does to a text: "
            f"{', '.join(missing)}. Update keras_deepnmt."
        )
    symbols, steps = user_defined_symbols(model), []
    for name in names:
        form, given = TEXT_STEPS[name].form, options.get(name, {})
        if form is not None:
            check_form(given, f"{origin}: damaged: the step {name}", form)
        steps.append(TEXT_STEPS[name](symbols, **(given if form else {})))
    return tuple(steps)


def user_defined_symbols(model: model_pb2.ModelProto) -> list[str]:
    """Returns the texts that always are one piece.

    Where such a piece has the mark of a word's begin, the text has none.
    """
    pieces = model.pieces
    return [pieces[id_].piece.removeprefix("▁") for id_ in symbol_ids(model)]


def symbol_ids(model: model_pb2.ModelProto) -> list[int]:
    """Returns the ids of the pieces that stand for these texts."""
    kinds = model_pb2.ModelProto.SentencePiece
    return [
        id_
        for id_, piece in enumerate(model.pieces)
        if piece.type == kinds.USER_DEFINED
    ]


def _varint(number: int) -> bytes:
    """Encodes a number as Protocol Buffers do."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
