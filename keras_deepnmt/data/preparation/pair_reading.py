"""The first pass of `prepare`: from text files to temporary files.

It has two rounds. In the first one, pairs are read and judged one by one; they
wait on disk, and so do their hashes. In the second one, repetitions are known,
and the pairs that are kept are written.
"""

import collections
import functools
import itertools
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.bilingual_files.pair_lines import PairLines
from keras_deepnmt.data.context import ContextWindow, with_context
from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.block_maps import BlockMap, map_here
from keras_deepnmt.data.preparation.filter_warnings import LeftOut
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.language_filter import (
    Direction,
    LanguageFilters,
)
from keras_deepnmt.data.preparation.pair_judging import JudgedPair, PairJudge
from keras_deepnmt.data.preparation.rejected_pairs import RejectedPairs
from keras_deepnmt.data.preparation.repetitions import Repetitions
from keras_deepnmt.data.preparation.spool import BLOCK_PAIRS, ORIGIN, Spool
from keras_deepnmt.data.preparation.text_filters import PairFilter
from keras_deepnmt.data.tags import tagged_text


class ReadCorpus(NamedTuple):
    """A corpus whose pairs were judged.

    Attributes:
        number: that of the corpus in its split.
        corpus: the corpus.
        entry: that of the manifest, still without the number of kept pairs.
        position: where its pairs begin in the file of judged pairs.
        blocks: how many blocks of them there are.
    """

    number: int
    corpus: CorpusFiles
    entry: dict
    position: int
    blocks: int


class _Pair(NamedTuple):
    line: int
    judged: JudgedPair


class PairReader:
    """Reads the corpora of one split and spools the pairs that are kept.

    `read` is called for each corpus, then `find_repetitions`, and then `keep`
    for each. As a context manager it frees the disk that it used in `folder`.

    `reasons` are those for which pairs may be left out, which are counted.
    `pair_filter=None` refuses pairs with an empty side only. A side is empty if
    its tokenizer, whose rule is in `normalizations`, reads nothing.
    `languages` decides about the languages of pairs, if they are given. Both
    filters are made for the direction of each corpus.
    `block_filters` name further reasons, and return for pairs, as
    `compared_text` gives them, which of them to keep. `sample` receives every
    kept pair, and `rejected` every other one. `progress` is called with the
    number of bytes read since its last call. `map_blocks` calls `PairJudge` and
    `RepeatedRows`. `context` is the number of sentences before each source
    sentence, and `tags` are those that a sentence may begin with.
    """

    def __init__(
        self,
        folder: Path,
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
        tags: Sequence[str] = (),
    ):
        self._context, self._tags = context, tags
        self.counts = {"read": 0, **dict.fromkeys(reasons, 0)}
        self._split = split
        self._corpora = list(corpora)
        self._normalizations = normalizations
        self._pair_filter = pair_filter
        self._languages = languages
        self._map_blocks = map_blocks
        self._files = ExitStack()
        self._repetitions = None
        if drop_duplicates:
            self._repetitions = self._files.enter_context(
                Repetitions(folder, map_blocks)
            )
        # No other program can write to a file without a name.
        self._judged = self._files.enter_context(
            tempfile.TemporaryFile(dir=folder)
        )
        self._num_judged = 0  # those with a row of `Repetitions`
        self._sample = sample
        self._bad_lines = bad_lines
        self._rejected = rejected
        self._block_filters = block_filters or {}
        self._progress = progress

    def __enter__(self) -> "PairReader":
        return self

    def __exit__(self, *error):
        self._files.close()

    def read(self, number: int) -> ReadCorpus:
        """Reads a corpus and judges its pairs, which wait on disk.

        `number` is that of the corpus in the split, which may name it twice.
        """
        corpus = self._corpora[number]
        pair_lines = PairLines(corpus)
        lines = blocks = 0
        position = self._judged.tell()
        for block, judged in self._judged_blocks(pair_lines, corpus):
            lines += len(block)
            blocks += 1
            pairs = self._decoded(block, judged, corpus)
            hashes = [p.judged.hash for p in pairs if p.judged.reason is None]
            if self._repetitions is not None:
                self._repetitions.add(np.array(hashes, "uint64"), corpus.weight)
            pickle.dump((self._num_judged, pairs), self._judged)
            self._num_judged += len(hashes)
        self.counts["read"] += lines
        entry = {
            "name": corpus.name,
            "source": str(corpus.source),
            "target": str(corpus.target),
            "sha256": pair_lines.sha256,
            "lines": lines,
            "pairs": 0,
            "weight": corpus.weight,
            "tag": corpus.tag,
            "direction": list(corpus.direction),
            **(
                {"skipped": dict(pair_lines.skipped)}
                if pair_lines.skipped
                else {}
            ),
        }
        return ReadCorpus(number, corpus, entry, position, blocks)

    def find_repetitions(self, progress=lambda share: None):
        """Finds pairs that occur again, when all corpora are read.

        A pair counts for the corpus with the largest weight that has it, or
        else the first. `progress` is called with the share that was done since
        its last call.
        """
        if self._repetitions is not None:
            self._repetitions.find(progress)

    def keep(
        self,
        read: ReadCorpus,
        spool: Spool,
        left_out: LeftOut,
        raw_files=(),
        progress=lambda pairs: None,
    ) -> dict:
        """Spools the pairs of a corpus and returns its manifest entry.

        Kept pairs are spooled as they are, and also written to the two open
        text files in `raw_files`, if given, with the tag of the corpus.
        `left_out` receives the others. `progress` is called with the number of
        pairs since its last call.
        """
        before = spool.pairs
        self._judged.seek(read.position)
        for _ in range(read.blocks):
            row, block = pickle.load(self._judged)
            pairs = self._filter_block(row, block, read.corpus, left_out)
            if pairs:
                self._spool(pairs, read, spool, raw_files)
            progress(len(block))
        for reason, count in left_out.counts.items():
            # Without this reason the command fails in the end.
            self.counts[reason] = self.counts.get(reason, 0) + count
        return {**read.entry, "pairs": spool.pairs - before}

    def _blocks(self, pair_lines) -> Iterator[list]:
        """Iterates over lists of lines: number, source, target and context."""
        lines, position = iter(pair_lines), 0
        window = ContextWindow(self._context, self._tags)
        while block := list(itertools.islice(lines, BLOCK_PAIRS)):
            yield [(*line, self._before(window, *line[1:])) for line in block]
            self._progress(pair_lines.position - position)
            position = pair_lines.position

    def _before(self, window, source: bytes, target: bytes) -> str:
        """The context of a line; one with two empty sides ends a document."""
        replaces = self._bad_lines.errors == "replace"
        try:
            text = source.decode("utf-8", "replace" if replaces else "strict")
        except UnicodeDecodeError:
            # Its pair is left out, and what cannot be read is no context.
            return ""
        return window.before(text, target.decode("utf-8", "replace"))

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
            bool(self._block_filters),
        )

    def _decoded(self, block, judged, corpus) -> list[_Pair]:
        """Returns the pairs, also those that are not UTF-8."""
        return [
            _Pair(
                line,
                found
                if found is not None
                else self._judge_undecodable(sides, corpus, line, before),
            )
            for (line, *sides, before), found in zip(block, judged, strict=True)
        ]

    def _judge_undecodable(self, sides, corpus, line, before) -> JudgedPair:
        """Judges a pair with replaced bytes, or leaves it out.

        Here, since the lines are named in their order.
        """
        texts = _decode(sides, corpus, line, self._bad_lines)
        if texts is not None:
            judge = PairJudge(*self._judge_of(corpus))
            return judge.judge(texts, corpus.tag, before)
        texts = tuple(
            side.decode("utf-8", "backslashreplace") for side in sides
        )
        return JudgedPair(texts, None, "encoding", 0, True)

    def _spool(self, pairs, read: ReadCorpus, spool, raw_files):
        origins = np.empty(len(pairs), ORIGIN)
        origins["corpus"] = read.number
        origins["line"] = [pair.line for pair in pairs]
        texts = [
            (with_context(judged.before, source, self._tags), target)
            for judged in (pair.judged for pair in pairs)
            for source, target in [judged.texts]
        ]
        spool.write(texts, origins)
        self._sample.add(texts)
        if raw_files:
            tagged = (tagged_text(pair[0], read.corpus.tag) for pair in texts)
            raw_files[0].writelines(text + "\n" for text in tagged)
            raw_files[1].writelines(pair[1] + "\n" for pair in texts)

    def _filter_block(
        self, row, block, corpus, left_out: LeftOut
    ) -> list[_Pair]:
        def leave_out(pair, reason):
            left_out.add(reason, pair.line, *pair.judged.texts)
            self._rejected.add(
                self._split, corpus, pair.line, reason, *pair.judged.texts
            )

        pairs = []
        for pair in block:
            if pair.judged.reason is None:
                pairs.append(pair)
            else:
                leave_out(pair, pair.judged.reason)
        filters: dict[str, Callable] = {}
        if self._repetitions is not None:
            # They are those that have rows.
            filters["duplicate"] = functools.partial(self._are_new, row)
        if self._languages is not None:
            filters["language"] = _fit_languages
        for reason, keeps in self._block_filters.items():
            filters[reason] = functools.partial(_keep_compared, keeps)
        for reason, keeps in filters.items():
            kept = list(keeps(pairs)) if pairs else []
            for pair, keep in zip(pairs, kept, strict=True):
                if not keep:
                    leave_out(pair, reason)
            pairs = list(itertools.compress(pairs, kept))
        return pairs

    def _are_new(self, row, pairs) -> list[bool]:
        repeated = self._repetitions.are_repeated(row, row + len(pairs))
        return (~repeated).tolist()


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
