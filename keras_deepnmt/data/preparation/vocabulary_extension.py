"""Adds pieces to given tokenizers, learned from the training text.

All pieces stay, with their ids and scores, and so do the steps and the rule of
a tokenizer. First come the characters of the text that have no piece, then
pairs of pieces that often stand side by side in a word. So a text that contains
none of the new pieces is cut as before, and in other texts a new piece stands
where its parts stood.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.model_files import with_all_pieces
from keras_deepnmt.data.preparation.pair_merging import NewPiece, PairMerger
from keras_deepnmt.data.preparation.piece_rules import (
    NEVER_IN_PIECES,
    PieceRules,
)
from keras_deepnmt.data.tokenizers import WORD_MARK, Tokenizer
from keras_deepnmt.errors import UserError

_KINDS = model_pb2.ModelProto.SentencePiece
# How much better a piece of a unigram model is than its parts: its scores are
# multiples of this, so that sums are exact.
_BETTER = 1 / 256
_TEXTS_AT_A_TIME = 1024
# Tokens are counted before and after in so many sentences of each side.
_SENTENCES_TO_COUNT = 2_000


@dataclass(frozen=True)
class Extension:
    """What was added to the tokenizer of a side.

    Attributes:
        tokenizer: SHA-256 of the tokenizer before.
        characters: number of new pieces that are characters.
        merges: number of new pieces that join others.
        missing_characters: number of different characters of the text that
            have no piece still.
        tokens_before: tokens per sentence with the tokenizer before, in a
            sample of the text.
        tokens_after: the same with the new one.
    """

    tokenizer: str
    characters: int
    merges: int
    missing_characters: int
    tokens_before: float
    tokens_after: float


def check_extensible(tokenizer: Tokenizer) -> None:
    """Raises a `UserError` for a model that joins no pieces."""
    model = model_pb2.ModelProto.FromString(tokenizer.proto)
    if tokenizer.vocabulary_size < len(model.pieces):
        raise UserError(
            "`extend_vocabulary` needs a tokenizer all of whose pieces are in "
            f"the vocabulary. Received: {tokenizer.model_file}, with "
            f"{len(model.pieces):,} pieces for a vocabulary of "
            f"{tokenizer.vocabulary_size:,}"
        )
    kind = model.trainer_spec.model_type
    spec = model_pb2.TrainerSpec
    if kind not in (spec.BPE, spec.UNIGRAM):
        raise UserError(
            "`extend_vocabulary` needs a tokenizer of the type bpe or unigram. "
            f"Received: {tokenizer.model_file}, of the type "
            f"{spec.ModelType.Name(kind).lower()}"
        )


def extend_tokenizers(
    tokenizers: Sequence[Tokenizer],
    number: int,
    text_blocks: Iterable[Sequence[Sequence[str]]],
    character_coverage: float = 1.0,
) -> tuple[list[bytes], list[Extension]]:
    """Adds the same pieces to tokenizers that have the same ones.

    There is one tokenizer, or one for each side of a joint vocabulary. At most
    `number` pieces are new. A block of the text has a list of sentences for
    each tokenizer. If there is room, `character_coverage` is the share of the
    characters of the text that have a piece afterwards. Returns the serialized
    model of each tokenizer, and what was added to it.
    """
    words: Counter[tuple[str, ...]] = Counter()
    cutters = [_WordCutter(one) for one in tokenizers]
    samples = [_Sample() for _ in tokenizers]
    for block in text_blocks:
        for tokenizer, cutter, sample, texts in zip(
            tokenizers, cutters, samples, block, strict=True
        ):
            words.update(cutter.words(texts))
            sample.add(map(tokenizer.normalization.before, texts))
    pieces, missing = _new_pieces(cutters[0], number, words, character_coverage)
    models = [extended_model(one.proto, pieces) for one in tokenizers]
    singles = sum(not piece.parts for piece in pieces)
    return models, [
        Extension(
            tokenizer.sha256,
            characters=singles,
            merges=len(pieces) - singles,
            missing_characters=missing,
            tokens_before=_tokens_per_sentence(tokenizer.proto, sample),
            tokens_after=_tokens_per_sentence(model, sample),
        )
        for tokenizer, model, sample in zip(
            tokenizers, models, samples, strict=True
        )
    ]


def _new_pieces(cutter, number, words, coverage):
    """Returns the pieces, and how many characters have none still."""
    missing: Counter[str] = Counter()
    total = 0
    for word, times in words.items():
        for symbol in word:
            total += times * len(symbol)
            if symbol not in cutter.scores:
                missing[symbol] += times
    usable = {c: n for c, n in missing.items() if c not in NEVER_IN_PIECES}
    pieces, scores = [], dict(cutter.scores)
    if not cutter.has_bytes:
        covered = total - missing.total()
        # The most frequent first, and of these in their order.
        for character in sorted(usable, key=lambda c: (-usable[c], c)):
            if len(pieces) == number or covered >= coverage * total:
                break
            pieces.append(NewPiece(character))
            scores[character] = cutter.lowest
            covered += usable[character]
    merger = PairMerger(
        {word: times for word, times in words.items() if _may_grow(word)},
        scores,
        cutter.rules,
        by_score=cutter.is_bpe,
        offered=usable if cutter.has_bytes else (),
    )
    pieces += merger.merges(number - len(pieces))
    new = {piece.text for piece in pieces}
    return pieces, sum(character not in new for character in missing)


def _may_grow(word):
    return len(word) > 1 or len(word[0]) == 1


def extended_model(proto: bytes, pieces: Iterable[NewPiece]) -> bytes:
    """Returns a serialized model with more pieces, after all others.

    A BPE model joins them in their order, after its own pieces. In a unigram
    model a piece has a slightly higher score than its parts together.
    """
    model = model_pb2.ModelProto.FromString(proto)
    is_bpe = _is_bpe(model)
    scores = _scores(model)
    lowest = np.float32(min(scores.values(), default=0.0))
    for piece in pieces:
        if piece.parts and not is_bpe:
            score = sum(scores[part] for part in piece.parts) + _BETTER
        else:
            score = lowest
        if is_bpe:
            # Large numbers have no neighbour in float32 that is 1 less.
            lowest = min(lowest - 1, np.nextafter(lowest, np.float32("-inf")))
            score = lowest
        scores[piece.text] = float(score)
        model.pieces.add(piece=piece.text, score=float(score))
    model.trainer_spec.vocab_size = len(model.pieces)
    return with_all_pieces(model)


def _is_bpe(model) -> bool:
    return model.trainer_spec.model_type == model_pb2.TrainerSpec.BPE


def _scores(model) -> dict[str, float]:
    kinds = _KINDS.NORMAL, _KINDS.UNUSED
    return {p.piece: p.score for p in model.pieces if p.type in kinds}


class _WordCutter:
    """Cuts texts into words of pieces, as a tokenizer does.

    A word ends before `▁` (or after it), at a user-defined symbol, and where no
    piece may have the characters on both sides. A character without a piece
    stands for itself.
    """

    def __init__(self, tokenizer: Tokenizer):
        model = model_pb2.ModelProto.FromString(tokenizer.proto)
        self.tokenizer = tokenizer
        self.rules = PieceRules(model)
        self.scores = _scores(model)
        self.lowest = min(self.scores.values(), default=0.0)
        self.is_bpe = _is_bpe(model)
        symbols = tokenizer.user_defined_symbols
        self._symbols = {*symbols, *(WORD_MARK + text for text in symbols)}
        self._bytes = {
            piece.piece: bytes([int(piece.piece[3:5], 16)])  # <0x41>
            for piece in model.pieces
            if piece.type == _KINDS.BYTE
        }
        self.has_bytes = bool(self._bytes)
        self._joinable: dict[tuple[str, str], bool] = {}

    def words(self, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yields the words of texts."""
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            block = texts[start : start + _TEXTS_AT_A_TIME]
            for pieces in self.tokenizer.encode_as_pieces(block):
                yield from self._words(pieces)

    def _words(self, pieces):
        word: list[str] = []
        for symbol in self._with_characters(pieces):
            if word and (symbol is None or self._ends(word[-1], symbol)):
                yield tuple(word)
                word = []
            if symbol is not None:
                word.append(symbol)
        if word:
            yield tuple(word)

    def _with_characters(self, pieces):
        """Yields pieces, and characters without one; `None` for a symbol."""
        waiting = b""
        for piece in pieces:
            if piece in self._bytes:
                waiting += self._bytes[piece]
                continue
            yield from waiting.decode()
            waiting = b""
            if piece in self.scores:
                yield piece
            elif piece in self._symbols:
                yield None
            else:
                yield from piece
        yield from waiting.decode()

    def _ends(self, last, first):
        joinable = self._joinable.get((last, first))
        if joinable is None:
            if self.tokenizer.marks_word_ends:
                inside = not last.endswith(WORD_MARK)
            else:
                inside = not first.startswith(WORD_MARK)
            joinable = inside and self.rules.allow(last + first)
            self._joinable[last, first] = joinable
        return not joinable


class _Sample:
    """Keeps every n-th sentence, so that some thousands are kept."""

    def __init__(self):
        self.texts: list[str] = []
        self._step = 1
        self._seen = 0

    def add(self, texts: Iterable[str]):
        for text in texts:
            if self._seen % self._step == 0:
                self.texts.append(text)
            self._seen += 1
        while len(self.texts) > 2 * _SENTENCES_TO_COUNT:
            self.texts = self.texts[::2]
            self._step *= 2


def _tokens_per_sentence(proto: bytes, sample: _Sample) -> float:
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    tokens = sum(map(len, processor.encode(sample.texts, num_threads=1)))
    return round(tokens / len(sample.texts), 2)


def cut_new_pieces(old: Tokenizer, new: Tokenizer) -> list[np.ndarray]:
    """Returns the ids that new pieces had before a vocabulary grew.

    They are those that `old` gives for the characters of a piece within a word:
    of a character that it does not know, the unknown token or its bytes.

    The vocabulary of `new` must begin with that of `old`. Each of its further
    pieces gives one int32 array of ids of `old`.
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
