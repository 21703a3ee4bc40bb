"""Puts the special pieces of a SentencePiece model where this library has them.

The order is <pad> <unk> <s> </s>, then all other pieces as they were.
"""

from pathlib import Path

from keras_deepnmt.errors import UserError

_OUR_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}


def with_our_special_ids(proto: bytes, place: str | Path) -> bytes:
    """Re-orders the pieces of a model so that ours are its special ids.

    How text is cut depends on the pieces' scores, not on their order, so it
    stays the same; only the ids are others.

    Args:
        proto: A serialised SentencePiece model.
        place: Where it comes from, for error messages.

    Returns:
        The same bytes where the ids are ours already, else a new model.

    Raises:
        UserError: if it is no model or lacks a piece that cannot be added.

    Example:
    >>> with_our_special_ids(b"something else", "notes.txt")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: notes.txt: not a SentencePiece model...
    """
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(proto)
    except RuntimeError:
        processor = None
    if processor is None or not processor.get_piece_size():
        raise UserError(
            f"{place}: not a SentencePiece model ({len(proto)} bytes). "
            "Give the `.model` file that SentencePiece wrote."
        )
    ids = {
        "pad_id": processor.pad_id(),
        "unk_id": processor.unk_id(),
        "bos_id": processor.bos_id(),
        "eos_id": processor.eos_id(),
    }
    if ids == _OUR_IDS:
        return proto
    missing = [name for name in ("bos_id", "eos_id", "unk_id") if ids[name] < 0]
    if missing:
        raise UserError(
            f"{place}: the tokenizer must have an unknown, a begin and an end "
            f"piece. It lacks: {', '.join(missing)}. Train it with "
            "pad_id=0 unk_id=1 bos_id=2 eos_id=3, or let `prepare` train one."
        )
    return _reordered(proto, ids)


def _reordered(proto: bytes, ids: dict[str, int]) -> bytes:
    from sentencepiece import sentencepiece_model_pb2 as model_pb2

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
    taken = set(ids.values())
    rest = [piece for number, piece in enumerate(pieces) if number not in taken]
    new = model_pb2.ModelProto()
    new.CopyFrom(model)
    del new.pieces[:]
    new.pieces.extend([*special, *rest])
    for name, value in _OUR_IDS.items():
        setattr(new.trainer_spec, name, value)
    new.trainer_spec.pad_piece = padding.piece
    new.trainer_spec.vocab_size = len(new.pieces)
    return new.SerializeToString(deterministic=True)
