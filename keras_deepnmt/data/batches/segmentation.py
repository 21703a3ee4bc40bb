"""Random segmentations of a sentence, drawn from a tokenizer's pieces.

SentencePiece draws too, but its generator differs from process to process, so
a run that goes on could not draw what one that never stopped has drawn.
"""

import math
import random
import re
from itertools import pairwise

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from keras_deepnmt.data.tokenizers import Tokenizer

# A word with the mark of the space before it.
_WORD = re.compile("▁?[^▁]+|▁")
_MOST_WORDS = 100_000


class RandomSegmentation:
    """Cuts sentences into other pieces of the same tokenizer, word by word.

    BPE: while two neighbours can be merged, each such merge is left out with
    the probability alpha, and the best of the others is made; where all are
    left out, the word is done (Provilkov et al., 2020, Algorithm 1). Unigram:
    exact sampling from all segmentations of a word, from its end, by the sums
    over its beginnings (Kudo, 2018); a word's sums are kept for the next time.

    Args:
        tokenizer: The tokenizer, BPE or unigram.
        alpha: For BPE, the probability of leaving out a merge; for unigram,
            the exponent of a segmentation's probability.

    Example:
    >>> from keras_deepnmt.data import train_tokenizer
    >>> tokenizer = train_tokenizer(["ein Hund"] * 9, "rose.model", 14)
    >>> cut = RandomSegmentation(tokenizer, alpha=1.0)
    >>> tokenizer.pieces(cut.draw(tokenizer.encode(["ein Hund"])[0], seed=7))
    ['▁', 'e', 'i', 'n', '▁', 'H', 'u', 'n', 'd']
    """

    def __init__(self, tokenizer: Tokenizer, alpha: float):
        proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.proto)
        self.alpha = alpha
        self._names = [piece.piece for piece in proto.pieces]
        normal = sentencepiece_model_pb2.ModelProto.SentencePiece.NORMAL
        self._pieces = {
            piece.piece: (number, piece.score)
            for number, piece in enumerate(proto.pieces)
            if piece.type == normal
        }
        # Other pieces, as the unknown one and bytes, do not tell their text.
        self._normal = {number for number, _ in self._pieces.values()}
        self._longest = max(map(len, self._pieces), default=0)
        bpe = sentencepiece_model_pb2.TrainerSpec.BPE
        self._cut = (
            self._merge
            if proto.trainer_spec.model_type == bpe
            else self._walk_back
        )
        self._tables: dict[str, list | None] = {}

    def draw(self, ids: np.ndarray, seed: int) -> np.ndarray | None:
        """Cuts a sentence anew, as a function of the seed.

        Args:
            ids: Its ids, without special ids.
            seed: Non-negative integer.

        Returns:
            Other ids of the same text, int32; `None` where the text is not
            known or not made of pieces.
        """
        ids = ids.tolist()
        if not self._normal.issuperset(ids):
            return None
        # Python promises the numbers of `random` for all its versions.
        uniform = random.Random(seed).random
        names, found = self._names, []
        for word in _WORD.findall("".join([names[i] for i in ids])):
            pieces = self._cut(word, uniform)
            if pieces is None:
                return None
            found += pieces
        return np.array(found, "int32")

    def _merge(self, word, uniform):
        """BPE: at each step the best merge of those not left out."""
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

    def _walk_back(self, word, uniform):
        """Unigram: draws the last piece, then the one before it, and so on."""
        if word not in self._tables:
            if len(self._tables) >= _MOST_WORDS:
                self._tables.clear()
            self._tables[word] = self._table(word)
        table = self._tables.get(word) or self._table(word)
        if table is None:
            return None
        ids, end = [], len(word)
        while end:
            left = uniform()
            for choice in table[end]:
                left -= choice[2]
                if left < 0:
                    break
            end, number, _ = choice
            ids.append(number)
        return ids[::-1]

    def _table(self, word):
        """For each end: `(start, id, probability)` of the last piece."""
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
