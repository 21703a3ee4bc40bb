"""A SentencePiece tokenizer with fixed special ids.

Ids: 0 padding, 1 unknown, 2 begin, 3 end of sentence.

All that happens to a text before it is cut into pieces stands in the model
file: first its steps (`text_steps`), then its rule of characters and white
space (`normalization`). So text is read in the same way here, when data are
prepared, in a training graph and in an exported one. Pieces are joined by
SentencePiece, and then the steps are undone, the last one first.
"""

import bisect
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.model_files import (
    reorder_special_ids,
    size_of_model,
    steps_of_model,
    symbol_ids,
    user_defined_symbols,
)
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.text_steps import DropLastSpace, separator_of
from keras_deepnmt.data.word_units import word_spans
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import bytes_sha256, write_bytes
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

# The first character of the first piece of a word, or the last one of its last.
WORD_MARK = "▁"
# For so many, starting a thread takes longer than the work itself.
_FEW_INPUTS = 100


class Tokenizer:
    """Converts text to subword ids and back.

    If a model has its special ids elsewhere, its pieces are reordered to the
    ids 0 padding, 1 unknown, 2 begin, 3 end (a missing padding piece is added).
    `sha256` and `proto` are those of the reordered model.

    Args:
        model_file: Path of a SentencePiece model.

    Attributes:
        vocabulary_size: number of pieces. A model may have more, which are read
            as unknown, see `model_files.with_vocabulary`.
        steps: the `TextStep`s before and after SentencePiece, in order.
        normalization: what happens to a text before it is cut into pieces;
            `normalization.normalize(text)` shows it.
        marks_word_ends: whether `▁` is the last character of a word instead of
            its first.
        separator: the end of each piece that the next one of the same word
            follows, such as `@@` of subword-nmt; empty for other models, whose
            pieces have `▁` where a word begins.

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
        self._open(reorder_special_ids(proto, self.model_file))

    def __getstate__(self):
        # Where a tokenizer is sent to, its file need not be.
        return self.model_file, self.proto

    def __setstate__(self, state):
        self.model_file, proto = state
        self._open(proto)

    def _open(self, proto):
        self.proto = proto
        self.sha256 = bytes_sha256(self.proto)
        self._processor = sentencepiece.SentencePieceProcessor(
            model_proto=self.proto
        )
        self.vocabulary_size = size_of_model(self.proto, self.model_file)
        pieces = self._processor.get_piece_size()
        self._has_more_pieces = pieces > self.vocabulary_size
        model = model_pb2.ModelProto.FromString(self.proto)
        self.marks_word_ends = model.trainer_spec.treat_whitespace_as_suffix
        self.steps = steps_of_model(self.proto, self.model_file)
        if self.marks_word_ends:
            self.steps += (DropLastSpace(),)
        self.separator = separator_of(self.steps)
        self.normalization = Normalization(model.normalizer_spec, self.steps)

    @cached_property
    def crosses_spaces(self) -> bool:
        """Whether a piece has parts of two words, as in `Guten▁Tag`."""
        inner = slice(None, -1) if self.marks_word_ends else slice(1, None)
        pieces = self.pieces(range(END_ID + 1, self.vocabulary_size))
        return any(WORD_MARK in piece[inner] for piece in pieces)

    @cached_property
    def user_defined_symbols(self) -> list[str]:
        """The texts that always are one piece."""
        return user_defined_symbols(model_pb2.ModelProto.FromString(self.proto))

    @cached_property
    def symbol_ids(self) -> list[int]:
        """The id of each of `user_defined_symbols`."""
        return symbol_ids(model_pb2.ModelProto.FromString(self.proto))

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
        texts = [self.normalization.before(text) for text in texts]
        if self.separator:
            # SentencePiece would join unknown words to one token.
            rows = [
                self._processor.piece_to_id(_pieces_of_words(text))
                for text in texts
            ]
        else:
            rows = _together_or_singly(self._processor.encode, texts)
        rows = [np.array(row, "int32") for row in rows]
        if self._has_more_pieces:
            for row in rows:
                row[row >= self.vocabulary_size] = UNKNOWN_ID
        return rows

    def encode_as_pieces(self, texts: Sequence[str]) -> list[list[str]]:
        """Segments texts as `encode`, into strings.

        Args:
            texts: A list of sentences.

        Returns:
            One list per text: the piece of each token, and of an unknown token
            its characters.
        """
        texts = [self.normalization.before(text) for text in texts]
        if self.separator:
            return [_pieces_of_words(text) for text in texts]
        return [self._processor.encode(text, out_type=str) for text in texts]

    def encode_parts(
        self, texts: Sequence[str]
    ) -> tuple[list[list[int]], list[list[str]]]:
        """Segments texts that are parts of sentences.

        Where case is factored, a sentence that ends in several words in
        capitals has one symbol for all that follows. In a part of a sentence
        each of these words has its own.

        Args:
            texts: A list of texts.

        Returns:
            For each text its ids, as those of `encode`, and its pieces.
        """
        following = "".join(step.following for step in self.steps)
        texts = [text + following for text in texts]
        surplus = len(self.encode([following])[0]) if following else 0
        return tuple(
            [list(row)[: len(row) - surplus] for row in rows]
            for rows in (
                (ids.tolist() for ids in self.encode(texts)),
                self.encode_as_pieces(texts),
            )
        )

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
        texts = _together_or_singly(self._processor.decode, rows)
        return [self._after(text) for text in texts]

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

    def ids_of_pieces(self, pieces: Sequence[str]) -> list[int]:
        """Returns the id of each piece, as `pieces` named them.

        Args:
            pieces: Pieces of one row, special ones included.

        Returns:
            One id per piece.

        Raises:
            UserError: if the vocabulary lacks a piece.
        """
        ids = [self._processor.piece_to_id(piece) for piece in pieces]
        for piece, id_ in zip(pieces, ids, strict=True):
            is_known = id_ < self.vocabulary_size
            if not is_known or piece != self._processor.id_to_piece(id_):
                raise UserError(
                    f"The vocabulary has no piece {piece!r}: another tokenizer "
                    "divided the text."
                )
        return ids

    def decode_pieces(self, pieces: Sequence[str]) -> str:
        """Converts pieces back to text; other strings stand for themselves.

        Args:
            pieces: Pieces of one row, without special ones; strings that are no
                pieces may be among them.

        Returns:
            The text.
        """
        # SentencePiece would take an empty list for one empty row.
        joined = self._processor.decode_pieces(list(pieces)) if pieces else ""
        return self._after(joined)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Returns which characters of a text each token of `encode` stands for.

        They are those of the text as it is given, before normalization.

        Args:
            text: One sentence.

        Returns:
            The first character and the one after the last, for each token. Of
            several tokens for one character, some have none.
        """
        places = list(range(len(text) + 1))
        for step in self.steps:
            places = [places[place] for place in step.places(text)]
            text = step.before(text)
        if self.separator:
            spans = _spans_of_words(text)
        else:
            mapping = self._processor.encode(text, out_type="offset_mapping")
            spans = mapping["offsets"]
        return [(places[a], places[b]) for a, b in spans]

    def surfaces(self, text: str) -> list[str]:
        """Returns the part of a text that each token of `encode` stands for.

        It is the text before normalization, also of unknown tokens.

        Args:
            text: One sentence.

        Returns:
            One string per token, without white space around it; empty for a
            token that is only a space.
        """
        return [text[a:b].strip() for a, b in self.token_spans(text)]

    def token_words(
        self, text: str, start: int = 0, by_space: bool = False
    ) -> list[tuple[int, ...]]:
        """Returns which words of a text each token of `encode` belongs to.

        Words are those of the text as it is given, between white space; in
        scripts without spaces they are letters, see `word_units`. A token has
        several where a piece has several letters or crosses a space; a token
        that is only a space belongs to the next word.

        Args:
            text: One sentence.
            start: Number of characters at its beginning, a tag, that count as
                no word.
            by_space: Whether white space alone divides words, in scripts
                without spaces too.

        Returns:
            The numbers of the words, from 0, for each token; none for the
            tokens of a tag.
        """
        spans = word_spans(text[start:], by_space)
        words = [(a + start, b + start) for a, b in spans]
        ends = [end for _, end in words]
        found: list[tuple[int, ...]] = []
        for begin, end in self.token_spans(text):
            if begin < start and end <= start:
                found.append(())
                continue
            first = bisect.bisect_right(ends, begin)
            numbers = [
                number
                for number in range(first, len(words))
                if words[number][0] < end
            ]
            if len(numbers) > 1:  # some may be of dropped characters alone
                numbers = [
                    number
                    for number in numbers
                    if self.normalization.normalize(text[slice(*words[number])])
                ]
            found.append(tuple(numbers or [min(first, len(words) - 1)]))
        return found

    def word_numbers(self, ids: Sequence[int]) -> list[int]:
        """Returns the number of the word that each token of a row begins in.

        Args:
            ids: Ids of one row, without special ones.

        Returns:
            One number per id, from 0.
        """
        pieces = self.pieces(ids)
        if self.separator:
            starts = [False] * len(pieces[:1]) + [
                not piece.endswith(self.separator) for piece in pieces[:-1]
            ]
        elif self.marks_word_ends:
            ends = [False, *(piece.endswith(WORD_MARK) for piece in pieces)]
            starts = ends[: len(pieces)]
        else:
            joining = "".join(step.joining for step in self.steps)
            starts = [False] * len(pieces[:1]) + [
                piece.startswith(WORD_MARK) and before[-1:] not in [*joining]
                for before, piece in pairwise(pieces)
            ]
        return np.cumsum(starts, dtype="int64").tolist()

    def in_graph_tokenizer(self):
        """Builds the same tokenizer from TensorFlow operations.

        Returns:
            An object with the methods `tokenize` and `detokenize`, for
            `tf.data` and exported graphs.
        """
        from keras_deepnmt.data.graph_tokenizer import GraphTokenizer

        return GraphTokenizer(self.proto, self.steps)

    def has_pieces_of(self, other: "Tokenizer") -> bool:
        """Returns whether both tokenizers have the same pieces at the same ids.

        They may rewrite a text in different ways, as those of a joint
        vocabulary do.

        Args:
            other: Another tokenizer.
        """
        everything = range(self.vocabulary_size)
        return self.sha256 == other.sha256 or (
            self.vocabulary_size == other.vocabulary_size
            and self.pieces(everything) == other.pieces(everything)
        )

    def save(self, model_file: str | Path):
        """Writes the model, with its special ids in the order above.

        Args:
            model_file: Path to write; an existing file is replaced.
        """
        write_bytes(model_file, self.proto)

    def _after(self, text: str) -> str:
        for step in reversed(self.steps):
            text = step.after(text)
        return text

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


def _pieces_of_words(text):
    """The words of a text that is cut already, as pieces."""
    return [WORD_MARK + word for word in text.split(" ")] if text else []


def _spans_of_words(text):
    """Where these words begin and end."""
    spans, begin = [], 0
    for piece in _pieces_of_words(text):
        spans.append((begin, begin + len(piece) - len(WORD_MARK)))
        begin += len(piece)
    return spans


def _together_or_singly(function, inputs):
    """Calls a function of SentencePiece for a list of inputs.

    For a list it starts a new thread, and releases the GIL: callers with much
    text use threads themselves.
    """
    if len(inputs) > _FEW_INPUTS:
        return function(inputs, num_threads=1)
    return [function(one) for one in inputs]
