"""The first pass of `prepare`: from text files to temporary files."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.bilingual_files.pair_lines import PairLines
from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.filter_warnings import LeftOut
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.overlap import HeavierPairs
from keras_deepnmt.data.preparation.rejected_pairs import RejectedPairs
from keras_deepnmt.data.preparation.spool import BLOCK_PAIRS, ORIGIN, Spool
from keras_deepnmt.data.preparation.text_filters import (
    PairFilter,
    SeenHashes,
    compared_text,
    hash_text,
)
from keras_deepnmt.data.tags import tagged_text


class _Pair(NamedTuple):
    line: int
    texts: tuple[str, str]
    compared: tuple[str, str] | None  # None if it cannot be decoded


class PairReader:
    """Reads the corpora of one split and spools the pairs that are kept.

    `reasons` are those for which pairs may be left out, which are counted.
    `pair_filter=None` refuses pairs with an empty side only. A side is empty if
    its tokenizer, whose rule is in `normalizations`, reads nothing.
    `block_filters` name further reasons, and return for pairs, as
    `compared_text` gives them, which of them to keep. `sample` receives every
    kept pair, and `rejected` every other one. `progress` is called with the
    number of bytes read since its last call.
    """

    def __init__(
        self,
        split: str,
        corpora: Sequence[CorpusFiles],
        reasons: Sequence[str],
        pair_filter: PairFilter | None,
        drop_duplicates: bool,
        normalizations: tuple[Normalization, Normalization],
        sample: HeldOutSample,
        bad_lines: BadLines,
        rejected: RejectedPairs,
        block_filters: dict[str, Callable] | None = None,
        progress=lambda bytes: None,
    ):
        self.counts = {"read": 0, **dict.fromkeys(reasons, 0)}
        self._split = split
        self._corpora = list(corpora)
        self._filter = pair_filter
        self._seen = SeenHashes() if drop_duplicates else None
        self._heavier = HeavierPairs(corpora if drop_duplicates else [])
        self._normalizations = normalizations
        self._sample = sample
        self._bad_lines = bad_lines
        self._rejected = rejected
        self._block_filters = block_filters or {}
        self._progress = progress

    @property
    def read_twice(self) -> list[CorpusFiles]:
        """The corpora that `find_heavier_pairs` reads."""
        return self._heavier.corpora

    def find_heavier_pairs(self, errors: str):
        """Reads the corpora that are heavier than an earlier one.

        A pair counts for the heaviest corpus that has it. `errors` is that of
        `PrepareOptions`.
        """
        for corpus in self.read_twice:
            # These lines are reported when their corpus is read again.
            lines = BadLines(errors)
            for block in self._blocks(PairLines(corpus)):
                decoded = _decode_block(block, corpus, lines)
                texts = [pair.compared for pair in decoded if pair.compared]
                self._heavier.add(corpus, _hash_texts(texts, corpus.tag))

    def read(
        self, corpus: CorpusFiles, spool: Spool, left_out: LeftOut, raw_files=()
    ) -> dict:
        """Spools the pairs of a corpus and returns its manifest entry.

        Kept pairs are spooled as they are, and also written to the two open
        text files in `raw_files`, if given, with the tag of the corpus.
        `left_out` receives the others.
        """
        pair_lines = PairLines(corpus)
        before, lines = spool.pairs, 0
        for block in self._blocks(pair_lines):
            lines += len(block)
            pairs = self._filter_block(block, corpus, left_out)
            if pairs:
                self._keep(pairs, corpus, spool, raw_files)
        self.counts["read"] += lines
        for reason, count in left_out.counts.items():
            # Without this reason the command fails in the end.
            self.counts[reason] = self.counts.get(reason, 0) + count
        return {
            "name": corpus.name,
            "source": str(corpus.source),
            "target": str(corpus.target),
            "sha256": pair_lines.sha256,
            "lines": lines,
            "pairs": spool.pairs - before,
            "weight": corpus.weight,
            "tag": corpus.tag,
            **(
                {"skipped": dict(pair_lines.skipped)}
                if pair_lines.skipped
                else {}
            ),
        }

    def _blocks(self, pair_lines) -> Iterator[list]:
        """Iterates over lists of the number of a line, and its two sides."""
        lines, position = iter(pair_lines), 0
        while block := list(itertools.islice(lines, BLOCK_PAIRS)):
            yield block
            self._progress(pair_lines.position - position)
            position = pair_lines.position

    def _keep(self, pairs, corpus, spool, raw_files):
        origins = np.empty(len(pairs), ORIGIN)
        origins["corpus"] = self._corpora.index(corpus)
        origins["line"] = [pair.line for pair in pairs]
        texts = [pair.texts for pair in pairs]
        spool.write(texts, origins)
        self._sample.add(texts)
        if raw_files:
            tagged = (tagged_text(pair[0], corpus.tag) for pair in texts)
            raw_files[0].writelines(text + "\n" for text in tagged)
            raw_files[1].writelines(pair[1] + "\n" for pair in texts)

    def _filter_block(self, block, corpus, left_out: LeftOut) -> list[_Pair]:
        def leave_out(pair, reason):
            left_out.add(reason, pair.line, *pair.texts)
            self._rejected.add(
                self._split, corpus, pair.line, reason, *pair.texts
            )

        pairs = []
        for pair in _decode_block(block, corpus, self._bad_lines):
            reason = self._reason(pair)
            if reason is None:
                pairs.append(pair)
            else:
                leave_out(pair, reason)
        filters = dict(self._block_filters)
        if self._seen is not None:
            # First, since the others take longer.
            are_new = functools.partial(self._are_new, corpus)
            filters = {"duplicate": are_new, **filters}
        for reason, keeps in filters.items():
            kept = (
                list(keeps([pair.compared for pair in pairs])) if pairs else []
            )
            for pair, keep in zip(pairs, kept, strict=True):
                if not keep:
                    leave_out(pair, reason)
            pairs = list(itertools.compress(pairs, kept))
        return pairs

    def _are_new(self, corpus, texts) -> list[bool]:
        hashes = _hash_texts(texts, corpus.tag)
        # A pair that a heavier corpus has is new there.
        new = ~self._heavier.contain(corpus, hashes)
        new[new] = self._seen.add(hashes[new])
        return new.tolist()

    def _reason(self, pair: _Pair) -> str | None:
        if pair.compared is None:
            return "encoding"
        for rule, text in zip(self._normalizations, pair.texts, strict=True):
            if rule.is_empty(text):
                return "empty"
        return self._filter and self._filter.reason(*pair.compared)


def _decode_block(block, corpus, bad_lines: BadLines) -> list[_Pair]:
    pairs = []
    for line, *sides in block:
        texts = tuple(
            bad_lines.decode(side, path, line)
            for side, path in zip(
                sides, (corpus.source, corpus.target), strict=True
            )
        )
        if None in texts:
            texts = tuple(
                side.decode("utf-8", "backslashreplace") for side in sides
            )
            pairs.append(_Pair(line, texts, None))
        else:
            compared = compared_text(texts[0]), compared_text(texts[1])
            pairs.append(_Pair(line, texts, compared))
    return pairs


def _hash_texts(texts: list[tuple[str, str]], tag: str | None) -> np.ndarray:
    # With another tag a pair is another one: a model reads another source.
    more = () if tag is None else (tag,)
    return np.array([hash_text(*pair, *more) for pair in texts], "uint64")
