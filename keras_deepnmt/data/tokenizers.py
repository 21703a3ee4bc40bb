"""A SentencePiece model with this library's ids: 0 pad, 1 unk, 2 begin, 3 end.

Normalisation (NFKC, white space) is part of the model, so that text is cut the
same way here, in a training graph and in an exported one.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from keras_deepnmt.errors import UserError

PADDING_ID, UNKNOWN_ID, BEGIN_ID, END_ID = 0, 1, 2, 3
_OUR_IDS = {
    "pad_id": PADDING_ID,
    "unk_id": UNKNOWN_ID,
    "bos_id": BEGIN_ID,
    "eos_id": END_ID,
}


class Tokenizer:
    """Cuts text into subword ids and puts ids back together.

    A model whose special ids are elsewhere is taken too: its pieces are put
    into our order (padding is added where there is none). `sha256` and `proto`
    are those of the model in our order.

    Args:
        model_file: Path of a SentencePiece model.

    Raises:
        UserError: if the file is missing, is no SentencePiece model, or lacks
            an unknown, begin or end piece.

    Example:
    >>> from keras_deepnmt.data import train_tokenizer
    >>> text = ["ein kleiner Hund"] * 5
    >>> tokenizer = train_tokenizer(text, "source.model", 26)
    >>> ids = tokenizer.encode(["kleiner Hund"])
    >>> tokenizer.decode(ids)
    ['kleiner Hund']
    """

    def __init__(self, model_file: str | Path):
        self.model_file = Path(model_file)
        try:
            proto = self.model_file.read_bytes()
        except OSError as error:
            raise UserError(
                f"{model_file}: no tokenizer to read here ({error.strerror})."
            ) from error
        self.proto = with_our_special_ids(proto, self.model_file)
        self.sha256 = hashlib.sha256(self.proto).hexdigest()
        self._processor = sentencepiece.SentencePieceProcessor(
            model_proto=self.proto
        )
        self.vocabulary_size = self._processor.get_piece_size()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Cuts texts into ids.

        Args:
            texts: Texts, one sentence each.

        Returns:
            One int32 array per text, without special ids; characters outside
            the model's alphabet give 1.

        Raises:
            ValueError: if `texts` is one string instead of a list.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(
                f"`texts` must be a list of strings. Received: texts={texts!r}"
            )
        # One thread: SentencePiece starts its threads anew at every call, and
        # who has much text calls `encode` from several threads (no GIL held).
        rows = self._processor.encode(list(texts), num_threads=1)
        return [np.array(row, "int32") for row in rows]

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Puts ids back together.

        Args:
            ids: Rows of ids. A row ends at its first 3; 0 and 2 are dropped.

        Returns:
            One text per row; an unknown id shows as `⁇`.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        rows = [self._plain_ids(np.asarray(row, "int64")) for row in ids]
        # An empty list would be taken for one empty row.
        return self._processor.decode(rows, num_threads=1) if rows else []

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Names the piece of each id, special ones included.

        Args:
            ids: Ids of one row.

        Returns:
            One piece per id, for instance `▁Hund`.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        ids = np.asarray(ids, "int64")
        self._check(ids)
        return [self._processor.id_to_piece(piece) for piece in ids.tolist()]

    def in_graph_tokenizer(self):
        """Gives the same tokenizer as TensorFlow operations.

        Returns:
            A `keras_nlp.tokenizers.SentencePieceTokenizer` over the same
            model, for `tf.data` and exported graphs.
        """
        from keras_nlp.tokenizers import SentencePieceTokenizer

        return SentencePieceTokenizer(proto=self.proto)

    def save(self, model_file: str | Path):
        """Writes the model, in our order of ids.

        Args:
            model_file: Path to write; an older file is replaced.
        """
        unfinished = Path(f"{model_file}.unfinished")
        unfinished.write_bytes(self.proto)
        os.replace(unfinished, model_file)

    def _plain_ids(self, ids: np.ndarray) -> list[int]:
        ends = np.flatnonzero(ids == END_ID)
        ids = ids[: ends[0]] if len(ends) else ids
        self._check(ids)
        return ids[(ids != PADDING_ID) & (ids != BEGIN_ID)].tolist()

    def _check(self, ids: np.ndarray):
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.vocabulary_size:
            raise ValueError(
                "Ids must lie inside the vocabulary, "
                f"0..{self.vocabulary_size - 1}. "
                f"Received: {ids.min()}..{ids.max()}"
            )


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
