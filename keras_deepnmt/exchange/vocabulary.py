"""The vocabulary of another toolkit's model, with the ids of this package."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.merge_codes import MergeOptions
from keras_deepnmt.data.model_files import (
    with_begin_symbol,
    with_merges,
    with_vocabulary,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

# The logit of a token that the model does not have. No such token is chosen,
# and no sum changes; label smoothing still counts it, so it must not be larger.
NEVER = -100.0
_DEFAULT_NAMES = {
    PADDING_ID: "<pad>",
    UNKNOWN_ID: "<unk>",
    BEGIN_ID: "<s>",
    END_ID: "</s>",
}
# The id of a begin token that belongs to texts.
_FIRST_ID = len(_DEFAULT_NAMES)
_SPACE_MARK = "▁"


class Vocabulary:
    """The pieces of a model, in its order and in that of this package.

    Here the ids 0 to 3 are padding, unknown, begin and end, and all others
    follow in the order of the model. A padding, an unknown or a begin token
    that the model lacks is new here, and so is a padding or an unknown token
    that is also another token: its vector is zero and its logit so small that
    it is never chosen. A begin token that is the end there has the end's
    vector.

    Args:
        origin: the file it is from, for errors.
        names: the piece of each id of the model.
        padding, unknown, begin, end: ids of the special tokens in the model;
            `None` for a token that it lacks, other than the end.
        begins_texts: whether a text's first token is the begin token. This
            token is one of the text then, with the id 4 here.
        filling: how many of the last pieces only fill the vocabulary up. They
            have no id here.

    Attributes:
        names: as given.
        order: int array. The id in the model of each id of this package; that
            of the end for a new one.

    Example:
    >>> names = ["<unk>", "<s>", "</s>", "a"]
    >>> vocabulary = Vocabulary("a.txt", names, None, 0, 1, 2)
    >>> vocabulary.order.tolist(), len(vocabulary)
    ([2, 0, 1, 2, 3], 5)
    """

    def __init__(
        self,
        origin: Path | str,
        names: Sequence[str],
        padding: int | None,
        unknown: int | None,
        begin: int | None,
        end: int,
        begins_texts: bool = False,
        filling: int = 0,
    ):
        self.origin = origin
        self.names = list(names)
        self.begins_texts = begins_texts
        special = [padding, unknown, begin, end]
        for id_ in special:
            if id_ is not None and not 0 <= id_ < len(self.names):
                raise UserError(
                    f"{origin}: the ids of special tokens must be among the "
                    f"ids 0..{len(self.names) - 1}. Received: {id_}"
                )
        # Ids of this package whose token is another one's, or new.
        self.new = {BEGIN_ID} if begin in (None, end) else set()
        if padding in (None, begin, end):
            self.new.add(PADDING_ID)
        if unknown in (None, begin, end, padding):
            self.new.add(UNKNOWN_ID)
        # The name stays with the padding, as people know it.
        self._padding_begins = padding is not None and padding == begin != end
        self._zeros = [PADDING_ID, UNKNOWN_ID]
        if begin is None:
            self._zeros.append(BEGIN_ID)
        kept = [end if id_ is None else id_ for id_ in special]
        used = range(len(self.names) - filling)
        others = [i for i in used if i not in kept]
        self.order = np.array(kept + [begin] * begins_texts + others)

    def __len__(self) -> int:
        return len(self.order)

    def is_same(self, other: "Vocabulary") -> bool:
        """Whether another one has the same pieces at the same ids."""
        return (
            self.names == other.names
            and self.new == other.new
            and np.array_equal(self.order, other.order)
        )

    def rows(self, tensor: np.ndarray, name: str) -> np.ndarray:
        """Returns the rows of a tensor in the order of this package.

        The tensor has a row for each piece; `name` is its name, for errors.
        """
        if len(tensor) != len(self.names):
            raise UserError(
                f"{self.origin}: must have a piece for each of the "
                f"{len(tensor)} rows of {name} {tensor.shape}. Received: "
                f"{len(self.names)} pieces"
            )
        rows = tensor[self.order]
        for id_ in self._zeros:
            if id_ in self.new:
                rows[id_] = 0.0
        return rows

    def output_bias(self, bias: np.ndarray | None) -> np.ndarray | None:
        """Returns the bias of the logits in the order of this package.

        `None` stands for no bias. A vocabulary with new tokens always has one.
        """
        if bias is None and not self.new:
            return None
        if bias is None:
            bias = np.zeros(len(self.names), "float32")
        bias = self.rows(bias, "the bias of the logits")
        bias[list(self.new)] = NEVER
        return bias

    def pieces(self) -> list[str]:
        """Returns the piece of each id of this package."""
        pieces = [self.names[i] for i in self.order]
        renamed = set(self.new)
        if self._padding_begins:
            renamed = renamed - {PADDING_ID} | {BEGIN_ID}
        for id_ in renamed:
            pieces[id_] = unused_name(_DEFAULT_NAMES[id_], self.names)
        if self.begins_texts:
            pieces[_FIRST_ID] = unused_name("<begin>", self.names)
        return pieces

    def restrict(self, proto: bytes) -> bytes:
        """Returns a SentencePiece model without the pieces that are not here.

        As SentencePiece's own `SetVocabulary`: it then cuts a text into other
        pieces, but for single characters.
        """
        model = model_pb2.ModelProto.FromString(proto)
        kinds = model_pb2.ModelProto.SentencePiece
        known = set(self.names)
        for piece in model.pieces:
            if piece.type in (kinds.NORMAL, kinds.UNUSED):
                is_kept = piece.piece in known or len(piece.piece) == 1
                piece.type = kinds.NORMAL if is_kept else kinds.UNUSED
        return model.SerializeToString()

    def tokenizer(self, proto: bytes) -> bytes:
        """Returns a serialized SentencePiece model with these ids.

        A tag of the vocabulary that the model lacks becomes one token.
        """
        return self._with_ids(*with_tags(proto, self.pieces()))

    def merge_tokenizer(self, options: MergeOptions) -> bytes:
        """Returns a tokenizer that cuts words by codes of subword-nmt."""
        model = model_pb2.ModelProto()
        model.trainer_spec.model_type = model_pb2.TrainerSpec.WORD
        model.trainer_spec.unk_surface = " ⁇"
        spec = model.normalizer_spec
        spec.name = "identity"
        spec.add_dummy_prefix = spec.remove_extra_whitespaces = True
        spec.escape_whitespaces = True
        pieces = self.pieces()
        words = [_SPACE_MARK + piece for piece in pieces[_FIRST_ID:]]
        for word in words:
            model.pieces.add(piece=word)
        proto = self._with_ids(
            model.SerializeToString(), [*pieces[:_FIRST_ID], *words]
        )
        return with_merges(proto, options)

    def character_tokenizer(self) -> bytes:
        """Returns a tokenizer whose pieces are characters.

        A text is read as it is, with all its spaces. The piece of a space is
        `▁` or a space.
        """
        model = model_pb2.ModelProto()
        model.trainer_spec.model_type = model_pb2.TrainerSpec.CHAR
        spec = model.normalizer_spec
        spec.name = "identity"
        spec.add_dummy_prefix = spec.remove_extra_whitespaces = False
        spec.escape_whitespaces = True
        pieces = [
            _SPACE_MARK if piece == " " else piece for piece in self.pieces()
        ]
        if len(set(pieces)) < len(pieces):
            raise UserError(
                f"{self.origin}: must not have both a space and {_SPACE_MARK}, "
                "which stand for the same."
            )
        return self._with_ids(model.SerializeToString(), pieces)

    def _with_ids(self, proto, pieces):
        proto = with_vocabulary(proto, pieces)
        if self.begins_texts:
            return with_begin_symbol(proto, pieces[_FIRST_ID], self.origin)
        return proto


def with_tags(proto: bytes, names: Sequence[str]) -> tuple[bytes, list[str]]:
    """Adds the tags of a vocabulary to a SentencePiece model that lacks them.

    A tag, such as `>>deu<<` of a model for several languages, is one token.
    Returns the serialized model and the pieces of the vocabulary, in which a
    tag that was added has the mark of the word that it begins.
    """
    model = model_pb2.ModelProto.FromString(proto)
    known = {piece.piece for piece in model.pieces}
    names = list(names)
    for number, name in enumerate(names):
        is_tag = name.startswith(">>") and name.endswith("<<")
        if is_tag and name not in known:
            names[number] = f"{_SPACE_MARK}{name}"
            model.pieces.add(
                piece=names[number],
                type=model_pb2.ModelProto.SentencePiece.USER_DEFINED,
            )
    return model.SerializeToString(), names


def read_pieces(file: Path) -> list[str]:
    """Reads a file with a piece in each line, none of them twice."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 at byte {error.start}.") from error
    pieces = text.removesuffix("\n").split("\n") if text else []
    pieces = [piece.removesuffix("\r") for piece in pieces]
    if not pieces:
        raise UserError(f"{file}: is empty. It must have a piece in each line.")
    seen: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if piece in seen:
            raise UserError(
                f"{file}, line {line}: must be another piece than line "
                f"{seen[piece]}. Received: {piece!r}"
            )
        seen[piece] = line
    return pieces


def read_sentencepiece(file: Path) -> bytes:
    """Reads a SentencePiece model and returns it serialized."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    try:
        model = model_pb2.ModelProto.FromString(content)
    except Exception:  # of the module that protobuf generates
        model = model_pb2.ModelProto()
    if not model.pieces:
        raise UserError(
            f"{file}: not a SentencePiece model ({len(content)} bytes)."
        )
    return content


def unused_name(name: str, names: Sequence[str]) -> str:
    """Returns a name that is not among others, such as `<<s>>` for `<s>`."""
    while name in names:
        name = f"<{name}>"
    return name
