"""The first pass of `prepare`: from text files to temporary files."""

import itertools
import logging

import numpy as np

from keras_deepnmt.data.corpora import (
    CorpusFiles,
    LineReader,
    aligned_lines,
    decode_line,
)
from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.preparation.comparison import compared_text
from keras_deepnmt.data.preparation.filter_warnings import LeftOut
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.spool import BLOCK_PAIRS, Spool
from keras_deepnmt.data.preparation.text_filters import (
    FILTERS,
    PairFilter,
    SeenHashes,
    hash_text,
)

_log = logging.getLogger(__name__)


class PairReader:
    """Reads the corpora of one split and spools the pairs that are kept.

    `pair_filter=None` refuses pairs with an empty side only. A side is empty if
    its tokenizer, whose rule is in `normalizations`, reads nothing. `sample`
    receives every kept pair. `progress` is called with the number of bytes read
    since its last call.
    """

    def __init__(
        self,
        pair_filter: PairFilter | None,
        drop_duplicates: bool,
        normalizations: tuple[Normalization, Normalization],
        sample: HeldOutSample,
        progress=lambda bytes: None,
    ):
        self.counts = {"read": 0, **dict.fromkeys(FILTERS, 0)}
        self._filter = pair_filter
        self._seen = SeenHashes() if drop_duplicates else None
        self._normalizations = normalizations
        self._sample = sample
        self._progress = progress

    def read(self, corpus: CorpusFiles, spool: Spool, raw_files=()) -> dict:
        """Spools the pairs of a corpus and returns its manifest entry.

        Kept pairs are spooled as they are, and also written to the two open
        text files in `raw_files`, if given.
        """
        readers = LineReader(corpus.source), LineReader(corpus.target)
        lines = aligned_lines(*readers)
        left_out = LeftOut(str(corpus.source), self._filter)
        before, number, position = spool.pairs, 1, 0
        while block := list(itertools.islice(lines, BLOCK_PAIRS)):
            pairs = self._filter_block(block, corpus, number, left_out)
            number += len(block)
            if pairs:
                spool.write(pairs)
                self._sample.add(pairs)
                for file, side in zip(raw_files, (0, 1), strict=False):
                    file.writelines(pair[side] + "\n" for pair in pairs)
            now = sum(reader.position for reader in readers)
            self._progress(now - position)
            position = now
        for reason, count in left_out.counts.items():
            self.counts[reason] += count
        for warning in left_out.warnings(number - 1):
            _log.warning("%s", warning)
        return {
            "name": corpus.name,
            "source": str(corpus.source),
            "target": str(corpus.target),
            "sha256": {
                "source": readers[0].sha256,
                "target": readers[1].sha256,
            },
            "lines": number - 1,
            "pairs": spool.pairs - before,
            "weight": corpus.weight,
        }

    def _filter_block(
        self, block, corpus: CorpusFiles, number: int, left_out: LeftOut
    ):
        pairs, compared, places = [], [], []
        for offset, (source, target) in enumerate(block):
            texts = (
                decode_line(source, corpus.source, number + offset),
                decode_line(target, corpus.target, number + offset),
            )
            read = compared_text(texts[0]), compared_text(texts[1])
            reason = self._reason(texts, read)
            if reason is None:
                pairs.append(texts)
                compared.append(read)
                places.append(number + offset)
            else:
                left_out.add(reason, number + offset, *texts)
        self.counts["read"] += len(block)
        if self._seen is None or not pairs:
            return pairs
        new = self._seen.add(
            np.array([hash_text(*pair) for pair in compared], "uint64")
        ).tolist()
        for is_new, place, texts in zip(new, places, pairs, strict=True):
            if not is_new:
                left_out.add("duplicate", place, *texts)
        return list(itertools.compress(pairs, new))

    def _reason(self, texts, compared) -> str | None:
        for rule, text in zip(self._normalizations, texts, strict=True):
            if rule.is_empty(text):
                return "empty"
        return self._filter and self._filter.reason(*compared)
