"""The first pass of `prepare`: from text files to temporary files."""

import collections
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.bilingual_files.pair_lines import PairLines
from keras_deepnmt.data.context import ContextWindow
from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.block_maps import BlockMap, map_here
from keras_deepnmt.data.preparation.filter_warnings import LeftOut
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.language_filter import (
    Direction,
    LanguageFilter,
    LanguageFilters,
)
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


class JudgedPair(NamedTuple):
    """What can be said of a pair without the others.

    Attributes:
        texts: both sides.
        compared: both sides as filters read them.
        reason: why it is left out, if it is.
        hash: by which repetitions are found; 0 if it is left out.
        fits_languages: whether it has the languages that were asked for.
    """

    texts: tuple[str, str]
    compared: tuple[str, str]
    reason: str | None
    hash: int
    fits_languages: bool


class PairJudge:
    """Decodes the pairs of a block, and says which of them break a rule.

    Args:
        normalizations: as in `PairReader`.
        pair_filter: as in `PairReader`.
        languages: as in `PairReader`.
    """

    def __init__(
        self,
        normalizations: tuple[Normalization, Normalization],
        pair_filter: PairFilter | None,
        languages: LanguageFilter | None,
    ):
        self._normalizations = normalizations
        self._filter = pair_filter
        self._languages = languages

    def __call__(
        self, sides: Sequence[tuple[bytes, bytes, str]], tag: str | None
    ) -> list[JudgedPair | None]:
        """Returns what is known of each pair; `None` if it is not UTF-8.

        `sides` are source and target of each, and the context of the source.
        """
        found: list[JudgedPair | None] = []
        for *pair, before in sides:
            try:
                texts = pair[0].decode("utf-8"), pair[1].decode("utf-8")
            except UnicodeDecodeError:
                found.append(None)
            else:
                found.append(self.judge(texts, tag, before))
        return found

    def judge(
        self, texts: tuple[str, str], tag: str | None, before: str = ""
    ) -> JudgedPair:
        """Returns what is known of a pair of texts.

        Rules are about the texts alone; `before` is the context of the source.
        """
        compared = compared_text(texts[0]), compared_text(texts[1])
        reason = self._reason(texts, compared)
        if reason is not None:
            return JudgedPair(texts, compared, reason, 0, True)
        fits = True
        if self._languages is not None:
            (fits,) = self._languages.keeps([compared])
        known = _hash(compared, tag, before)
        texts = f"{before}{texts[0]}", texts[1]
        return JudgedPair(texts, compared, None, known, fits)

    def _reason(self, texts, compared):
        for rule, text in zip(self._normalizations, texts, strict=True):
            if rule.is_empty(text):
                return "empty"
        return self._filter and self._filter.reason(*compared)


class _Pair(NamedTuple):
    line: int
    judged: JudgedPair


class PairReader:
    """Reads the corpora of one split and spools the pairs that are kept.

    `reasons` are those for which pairs may be left out, which are counted.
    `pair_filter=None` refuses pairs with an empty side only. A side is empty if
    its tokenizer, whose rule is in `normalizations`, reads nothing.
    `languages` decides about the languages of pairs, if they are given. Both
    filters are made for the direction of each corpus.
    `block_filters` name further reasons, and return for pairs, as
    `compared_text` gives them, which of them to keep. `sample` receives every
    kept pair, and `rejected` every other one. `progress` is called with the
    number of bytes read since its last call. `map_blocks` calls `PairJudge`.
    `context` is the number of sentences before each source sentence.
    """

    def __init__(
        self,
        split: str,
        corpora: Sequence[CorpusFiles],
        reasons: Sequence[str],
        pair_filter: Callable[[Direction], PairFilter] | None,
        drop_duplicates: bool,
        normalizations: tuple[Normalization, Normalization],
        sample: HeldOutSample,
        bad_lines: BadLines,
        rejected: RejectedPairs,
        languages: LanguageFilters | None = None,
        block_filters: dict[str, Callable] | None = None,
        progress=lambda bytes: None,
        map_blocks: BlockMap = map_here,
        context: int = 0,
    ):
        self._context = context
        self.counts = {"read": 0, **dict.fromkeys(reasons, 0)}
        self._split = split
        self._corpora = list(corpora)
        self._normalizations = normalizations
        self._pair_filter = pair_filter
        self._languages = languages
        self._map_blocks = map_blocks
        self._seen = SeenHashes() if drop_duplicates else None
        self._heavier = HeavierPairs(corpora if drop_duplicates else [])
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
                decoded = (
                    (_decode(sides, corpus, line, lines), before)
                    for line, *sides, before in block
                )
                hashes = [
                    _hash(tuple(map(compared_text, texts)), corpus.tag, before)
                    for texts, before in decoded
                    if texts is not None
                ]
                self._heavier.add(corpus, np.array(hashes, "uint64"))

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
        for block, judged in self._judged_blocks(pair_lines, corpus):
            lines += len(block)
            pairs = self._filter_block(block, judged, corpus, left_out)
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
            "direction": list(corpus.direction),
            **(
                {"skipped": dict(pair_lines.skipped)}
                if pair_lines.skipped
                else {}
            ),
        }

    def _blocks(self, pair_lines) -> Iterator[list]:
        """Iterates over lists of lines: number, source, target and context."""
        lines, position = iter(pair_lines), 0
        window = ContextWindow(self._context)
        while block := list(itertools.islice(lines, BLOCK_PAIRS)):
            yield [(*line, _before(window, *line[1:])) for line in block]
            self._progress(pair_lines.position - position)
            position = pair_lines.position

    def _judged_blocks(self, pair_lines, corpus):
        """Iterates over the blocks, each with what is known of its pairs."""
        waiting = collections.deque()

        def calls():
            for block in self._blocks(pair_lines):
                waiting.append(block)
                yield [sides for _, *sides in block], corpus.tag

        made_of = self._judge_of(corpus)
        for judged in self._map_blocks(PairJudge, made_of, calls()):
            yield waiting.popleft(), judged

    def _judge_of(self, corpus):
        """Returns the arguments of `PairJudge` for a corpus."""
        pair_filter, languages = self._pair_filter, self._languages
        return (
            self._normalizations,
            pair_filter and pair_filter(corpus.direction),
            languages and languages[corpus.direction],
        )

    def _keep(self, pairs, corpus, spool, raw_files):
        origins = np.empty(len(pairs), ORIGIN)
        origins["corpus"] = self._corpora.index(corpus)
        origins["line"] = [pair.line for pair in pairs]
        texts = [pair.judged.texts for pair in pairs]
        spool.write(texts, origins)
        self._sample.add(texts)
        if raw_files:
            tagged = (tagged_text(pair[0], corpus.tag) for pair in texts)
            raw_files[0].writelines(text + "\n" for text in tagged)
            raw_files[1].writelines(pair[1] + "\n" for pair in texts)

    def _filter_block(
        self, block, judged, corpus, left_out: LeftOut
    ) -> list[_Pair]:
        def leave_out(line, reason, texts):
            left_out.add(reason, line, *texts)
            self._rejected.add(self._split, corpus, line, reason, *texts)

        pairs = []
        for (line, *sides, before), found in zip(block, judged, strict=True):
            if found is None:
                found = self._judge_undecodable(sides, corpus, line, before)
            if isinstance(found, JudgedPair) and found.reason is None:
                pairs.append(_Pair(line, found))
            elif isinstance(found, JudgedPair):
                leave_out(line, found.reason, found.texts)
            else:
                leave_out(line, "encoding", found)
        filters: dict[str, Callable] = {}
        if self._seen is not None:
            filters["duplicate"] = functools.partial(self._are_new, corpus)
        if self._languages is not None:
            filters["language"] = _fit_languages
        for reason, keeps in self._block_filters.items():
            filters[reason] = functools.partial(_keep_compared, keeps)
        for reason, keeps in filters.items():
            kept = list(keeps(pairs)) if pairs else []
            for pair, keep in zip(pairs, kept, strict=True):
                if not keep:
                    leave_out(pair.line, reason, pair.judged.texts)
            pairs = list(itertools.compress(pairs, kept))
        return pairs

    def _judge_undecodable(self, sides, corpus, line, before):
        """Returns a pair with replaced bytes, or its texts if it is left out.

        Here, since the lines are named in their order.
        """
        texts = _decode(sides, corpus, line, self._bad_lines)
        if texts is not None:
            judge = PairJudge(*self._judge_of(corpus))
            return judge.judge(texts, corpus.tag, before)
        return tuple(side.decode("utf-8", "backslashreplace") for side in sides)

    def _are_new(self, corpus, pairs) -> list[bool]:
        hashes = np.array([pair.judged.hash for pair in pairs], "uint64")
        # A pair that a heavier corpus has is new there.
        new = ~self._heavier.contain(corpus, hashes)
        new[new] = self._seen.add(hashes[new])
        return new.tolist()


def _fit_languages(pairs):
    return [pair.judged.fits_languages for pair in pairs]


def _keep_compared(keeps, pairs):
    return keeps([pair.judged.compared for pair in pairs])


def _decode(sides, corpus, line, bad_lines: BadLines):
    """Decodes both sides; `None` if the pair is to be left out."""
    texts = tuple(
        bad_lines.decode(side, path, line)
        for side, path in zip(
            sides, (corpus.source, corpus.target), strict=True
        )
    )
    return None if None in texts else texts


def _before(window, source: bytes, target: bytes) -> str:
    """The context of a line; one with two empty sides ends a document."""
    ends = not source.strip() and not target.strip()
    return window.before(source.decode("utf-8", "replace"), ends)


def _hash(texts: tuple[str, str], tag: str | None, before: str = "") -> int:
    # With another tag or context a pair is another one: a model reads another
    # source.
    return hash_text(*texts, *filter(None, (tag, before)))
