"""Random segmentations of a sentence into pieces of its tokenizer.

SentencePiece can sample segmentations too, but its random numbers differ from
process to process, so a resumed run could not repeat the draws of an
uninterrupted one.
"""

import math
import random
import re
from itertools import groupby, pairwise

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

# A word with the mark of the preceding space, or of the following one.
_WORD = re.compile("▁?[^▁]+|▁")
_WORD_WITH_END = re.compile("[^▁]+▁?|▁")
# Where pieces cross spaces, a whole sentence is one word.
_SENTENCE = re.compile(".+", re.DOTALL)
_MAX_CACHED_WORDS = 100_000


class RandomSegmentation:
    """Draws other segmentations of sentences, word by word.

    BPE: while neighboring symbols can be merged, each possible merge is
    skipped with probability alpha and the best of the others is made; if all
    are skipped, the word is finished (Provilkov et al., 2020, Algorithm 1).
    Unigram: exact sampling from all segmentations of a word, from its last
    piece to its first, with the forward sums over its prefixes (Kudo, 2018);
    the sums of a word are cached.

    `alpha` is the probability of skipping a merge for BPE, and the exponent of
    a segmentation's probability for unigram. A `UserError` refuses codes of
    subword-nmt.
    """

    def __init__(self, tokenizer: Tokenizer, alpha: float):
        if tokenizer.separator:
            raise UserError(
                "Subword sampling needs a tokenizer whose pieces SentencePiece "
                f"chooses. Received: {tokenizer.model_file}, with codes of "
                "subword-nmt. Leave out `subword_sampling`."
            )
        proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.proto)
        self.alpha = alpha
        self._names = [piece.piece for piece in proto.pieces]
        if tokenizer.crosses_spaces:
            self._word = _SENTENCE
        else:
            self._word = _WORD_WITH_END if tokenizer.marks_word_ends else _WORD
        kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
        normal = kinds.NORMAL
        self._pieces = {
            piece.piece: (number, piece.score)
            for number, piece in enumerate(proto.pieces)
            if piece.type == normal and number < tokenizer.vocabulary_size
        }
        # Symbols of users stay; other pieces, such as unknown and byte pieces,
        # do not give their text.
        self._fixed = {
            number
            for number, piece in enumerate(proto.pieces)
            if piece.type == kinds.USER_DEFINED
        }
        self._known = self._fixed | {
            number for number, _ in self._pieces.values()
        }
        self._longest = max(map(len, self._pieces), default=0)
        bpe = sentencepiece_model_pb2.TrainerSpec.BPE
        self._segment_word = (
            self._segment_bpe
            if proto.trainer_spec.model_type == bpe
            else self._segment_unigram
        )
        self._tables: dict[str, list | None] = {}

    def draw(self, ids: np.ndarray, seed: int) -> np.ndarray | None:
        """Returns int32 ids of another segmentation, as a function of the seed.

        Special ids are not included. Returns `None` if the text cannot be
        recovered from `ids` (unknown words) or is not made of pieces.
        """
        ids = ids.tolist()
        if not self._known.issuperset(ids):
            return None
        # Python guarantees the numbers of `random` for all versions.
        uniform = random.Random(seed).random
        names, drawn = self._names, []
        for is_fixed, part in groupby(ids, self._fixed.__contains__):
            if is_fixed:
                drawn += part
                continue
            for word in self._word.findall("".join([names[i] for i in part])):
                pieces = self._segment_word(word, uniform)
                if pieces is None:
                    return None
                drawn += pieces
        return np.array(drawn, "int32")

    def _segment_bpe(self, word, uniform):
        """BPE: repeatedly makes the best merge that is not skipped."""
        symbols, known = list(word), self._pieces
        while len(symbols) > 1:
            best, place = -math.inf, None
            for number, (left, right) in enumerate(pairwise(symbols)):
                entry = known.get(left + right)
                if entry is None or uniform() < self.alpha:
                    continue
                if entry[1] > best:
                    best, place = entry[1], number
            if place is None:
                break
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        entries = [known.get(symbol) for symbol in symbols]
        return None if None in entries else [entry[0] for entry in entries]

    def _segment_unigram(self, word, uniform):
        """Unigram: draws the pieces from the last one to the first."""
        table = self._cached_table(word)
        if table is None:
            return None
        ids, end = [], len(word)
        while end:
            remaining = uniform()
            for choice in table[end]:
                remaining -= choice[2]
                if remaining < 0:
                    break
            end, number, _ = choice
            ids.append(number)
        return ids[::-1]

    def _cached_table(self, word):
        if self._word is _SENTENCE:
            return self._table(word)  # which rarely comes again
        if word not in self._tables:
            if len(self._tables) >= _MAX_CACHED_WORDS:
                self._tables.clear()
            self._tables[word] = self._table(word)
        return self._tables.get(word) or self._table(word)

    def _table(self, word):
        """Lists `(start, id, probability)` of each prefix's last piece."""
        total, table = [0.0] + [-math.inf] * len(word), [[]]
        for end in range(1, len(word) + 1):
            arcs = []
            for start in range(max(0, end - self._longest), end):
                entry = self._pieces.get(word[start:end])
                if entry is not None and total[start] > -math.inf:
                    weight = total[start] + self.alpha * entry[1]
                    arcs.append((start, entry[0], weight))
            if arcs:
                top = max(weight for *_, weight in arcs)
                norm = sum(math.exp(weight - top) for *_, weight in arcs)
                total[end] = top + math.log(norm)
            table.append(
                [
                    (start, number, math.exp(weight - total[end]))
                    for start, number, weight in arcs
                ]
            )
        return table if table[-1] else None
