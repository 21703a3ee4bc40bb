"""A SentencePiece tokenizer with fixed special ids.

Ids: 0 padding, 1 unknown, 2 begin, 3 end of sentence. Normalization (NFKC,
white space) is part of the model, so text is segmented in the same way here, in
a training graph and in an exported one.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import bytes_sha256, write_bytes
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

_SPECIAL_IDS = {
    "pad_id": PADDING_ID,
    "unk_id": UNKNOWN_ID,
    "bos_id": BEGIN_ID,
    "eos_id": END_ID,
}
# For so many, starting a thread takes longer than the work itself.
_FEW_INPUTS = 100


class Tokenizer:
    """Converts text to subword ids and back.

    If a model has its special ids elsewhere, its pieces are reordered to the
    ids 0 padding, 1 unknown, 2 begin, 3 end (a missing padding piece is added).
    `sha256` and `proto` are those of the reordered model.

    Args:
        model_file: Path of a SentencePiece model.

    Raises:
        UserError: if the file is missing, is not a SentencePiece model, or has
            no unknown, begin or end piece.

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
                f"{model_file}: no tokenizer found ({error.strerror})."
            ) from error
        self.proto = reorder_special_ids(proto, self.model_file)
        self.sha256 = bytes_sha256(self.proto)
        self._processor = sentencepiece.SentencePieceProcessor(
            model_proto=self.proto
        )
        self.vocabulary_size = self._processor.get_piece_size()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Segments texts into ids.

        Args:
            texts: A list of sentences.

        Returns:
            One int32 array per text, without special ids. Characters outside
            the model's alphabet give id 1.

        Raises:
            ValueError: if `texts` is one string instead of a list.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(
                f"`texts` must be a list of strings. Received: texts={texts!r}"
            )
        rows = _together_or_singly(self._processor.encode, list(texts))
        return [np.array(row, "int32") for row in rows]

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Converts ids back to text.

        Args:
            ids: Rows of ids. A row ends at its first 3; ids 0 and 2 are
                dropped.

        Returns:
            One text per row; an unknown id gives `⁇`.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        rows = [
            self._without_special_ids(np.asarray(row, "int64")) for row in ids
        ]
        return _together_or_singly(self._processor.decode, rows)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the piece of each id, including special ones.

        Args:
            ids: Ids of one row.

        Returns:
            One piece per id, for instance `▁Hund`.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        ids = np.asarray(ids, "int64")
        self._check_range(ids)
        return [self._processor.id_to_piece(piece) for piece in ids.tolist()]

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """Converts pieces back to text; other strings stand for themselves.

        Args:
            pieces: Pieces of one row, without special ones; strings that are no
                pieces may be among them.

        Returns:
            The text.
        """
        # SentencePiece would take an empty list for one empty row.
        return self._processor.decode_pieces(list(pieces)) if pieces else ""

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of a text that each token of `encode` stands for.

        It is the text before normalization, also of unknown tokens.

        Args:
            text: One sentence.

        Returns:
            One string per token, without white space around it; empty for a
            token that is only a space.
        """
        from sentencepiece import sentencepiece_pb2

        proto = self._processor.encode(text, out_type="serialized_proto")
        parsed = sentencepiece_pb2.SentencePieceText.FromString(proto)
        return [piece.surface.strip() for piece in parsed.pieces]

    def in_graph_tokenizer(self):
        """Builds the same tokenizer from TensorFlow operations.

        Returns:
            A `keras_nlp.tokenizers.SentencePieceTokenizer` with the same model,
            for `tf.data` and exported graphs.
        """
        from keras_nlp.tokenizers import SentencePieceTokenizer

        return SentencePieceTokenizer(proto=self.proto)

    def save(self, model_file: str | Path):
        """Writes the model, with its special ids in the order above.

        Args:
            model_file: Path to write; an existing file is replaced.
        """
        write_bytes(model_file, self.proto)

    def _without_special_ids(self, ids: np.ndarray) -> list[int]:
        ends = np.flatnonzero(ids == END_ID)
        ids = ids[: ends[0]] if len(ends) else ids
        self._check_range(ids)
        return ids[(ids != PADDING_ID) & (ids != BEGIN_ID)].tolist()

    def _check_range(self, ids: np.ndarray):
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.vocabulary_size:
            raise ValueError(
                "Ids must lie inside the vocabulary, "
                f"0..{self.vocabulary_size - 1}. "
                f"Received: {ids.min()}..{ids.max()}"
            )


def _together_or_singly(function, inputs):
    """Calls a function of SentencePiece for a list of inputs.

    For a list it starts a new thread, and releases the GIL: callers with much
    text use threads themselves.
    """
    if len(inputs) > _FEW_INPUTS:
        return function(inputs, num_threads=1)
    return [function(one) for one in inputs]


def reorder_special_ids(proto: bytes, origin: str | Path) -> bytes:
    """Reorders the pieces of a serialized model so that special ids are 0 to 3.

    Segmentation depends on the scores of the pieces, not on their order, so
    only the ids change. A model that already has these ids is returned
    unchanged. Raises a `UserError` that names `origin` if the bytes are not a
    model or a piece that cannot be added is missing.

    Example:
    >>> reorder_special_ids(b"something else", "notes.txt")
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
            f"{origin}: not a SentencePiece model ({len(proto)} bytes). "
            "Give the `.model` file that SentencePiece wrote."
        )
    ids = {
        "pad_id": processor.pad_id(),
        "unk_id": processor.unk_id(),
        "bos_id": processor.bos_id(),
        "eos_id": processor.eos_id(),
    }
    if ids == _SPECIAL_IDS:
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
    special_ids = set(ids.values())
    rest = [p for number, p in enumerate(pieces) if number not in special_ids]
    new = model_pb2.ModelProto()
    new.CopyFrom(model)
    del new.pieces[:]
    new.pieces.extend([*special, *rest])
    for name, value in _SPECIAL_IDS.items():
        setattr(new.trainer_spec, name, value)
    new.trainer_spec.pad_piece = padding.piece
    new.trainer_spec.vocab_size = len(new.pieces)
    return new.SerializeToString(deterministic=True)
