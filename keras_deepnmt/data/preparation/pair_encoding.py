"""The second pass of `prepare`: from temporary files to shards of ids."""

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.leakage import LeakageCounter, hash_pairs
from keras_deepnmt.data.preparation.pair_masking import PairMasker
from keras_deepnmt.data.preparation.shard_writer import (
    MAX_PAIR_LENGTH,
    ShardWriter,
)
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.preparation.unknown_tokens import UnknownTokens
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.threads import num_cores, results_in_order

# The writer keeps the index of a whole shard in memory, so shards are small.
RECORDS_PER_SHARD = 32_768


def encode_blocks(
    spool: Spool,
    tokenizers: tuple[Tokenizer, Tokenizer],
    hashed: bool,
    masker: PairMasker | None = None,
) -> Iterator[tuple]:
    """Tokenizes a spool on all cores, in the order of its pairs.

    Yields `(source ids, target ids, hashes, texts, encoded)` per block; hashes
    are those of `hash_pairs`, or `None` unless `hashed` is true; `texts` are
    its sources and targets, and `encoded` is what `masker` makes of them.
    """

    def encode(first_row, block):
        hashes = hash_pairs(*block) if hashed else None
        encoded = masker.mask_block(first_row, *block) if masker else block
        source_ids, target_ids = (
            tokenizer.encode(side)
            for tokenizer, side in zip(tokenizers, encoded, strict=True)
        )
        return source_ids, target_ids, hashes, block, encoded

    def calls():
        row = 0
        for block in spool.blocks():
            yield partial(encode, row, block)
            row += len(block[0])

    # Threads suffice, since SentencePiece releases the GIL; processes would
    # each import TensorFlow.
    yield from results_in_order(calls(), num_cores())


class PairEncoder:
    """Writes the shards of each split and counts leakage between splits.

    Held-out splits must be encoded before the training split. `progress` is
    called with the number of pairs encoded since its last call, and `unknown`
    counts the unknown tokens of the pairs that are written. `too_long` has
    the sides of held-out pairs that no shard can hold: the split, the row, the
    side (0 or 1) and the number of ids of each.
    """

    def __init__(
        self,
        folder: Path,
        tokenizers: tuple[Tokenizer, Tokenizer],
        unknown: UnknownTokens,
        progress=lambda pairs: None,
    ):
        self.leakage: dict[str, int] = {}
        self.too_long: list[tuple[str, int, int, int]] = []
        self._folder = folder
        self._tokenizers = tokenizers
        self._unknown = unknown
        self._progress = progress
        self._held_out_hashes: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def encode_held_out(self, split: str, spool: Spool) -> dict:
        """Encodes a valid or test split and returns its manifest entry."""
        hashes, row = [], 0
        with ShardWriter(self._folder, split, RECORDS_PER_SHARD) as writer:
            for *sides, block, texts, _ in self._blocks(spool, True):
                hashes.append(block)
                self._unknown.add(split, _by_side(sides, texts))
                for pair in zip(*sides, strict=True):
                    lengths = list(map(len, pair))
                    if max(lengths) <= MAX_PAIR_LENGTH:
                        writer.write(*pair)
                    self.too_long += [
                        (split, row, side, length)
                        for side, length in enumerate(lengths)
                        if length > MAX_PAIR_LENGTH
                    ]
                    row += 1
        self._held_out_hashes[split] = tuple(
            np.concatenate(side) for side in zip(*hashes, strict=True)
        )
        if split == "test" and "valid" in self._held_out_hashes:
            counter = LeakageCounter(*self._held_out_hashes["test"])
            counter.add(*self._held_out_hashes["valid"])
            self._record_leakage("valid_test", counter)
        return writer.summary

    def encode_train(
        self,
        spool: Spool,
        corpus_pairs: list[int],
        held_out_rows: Iterable[int],
        max_tokens: int,
        leave_out: Callable[[int, str, tuple, tuple], None],
        alignment: AlignmentFilter | None = None,
        masker: PairMasker | None = None,
    ) -> tuple[dict, list[int]]:
        """Encodes the training split.

        `corpus_pairs` are the numbers of pairs of each corpus in the spool,
        `held_out_rows` the rows of the spool to leave out. Pairs with more than
        `max_tokens` ids on a side are left out too: `leave_out` is called with
        the row, the reason, the two texts and their two numbers of ids. So are
        those that `alignment`
        finds to be misaligned. `masker` changes what is encoded, and the entry
        then has the number of the pairs that it changed. Returns the manifest
        entry and the number of pairs written of each corpus.
        """
        counters = {
            split: LeakageCounter(*hashes)
            for split, hashes in self._held_out_hashes.items()
        }
        held_out_rows = np.unique(np.asarray(held_out_rows, "int64"))
        ends = np.cumsum(corpus_pairs)
        written = np.zeros(len(corpus_pairs), "int64")
        row = masked = 0
        with ShardWriter(self._folder, "train", RECORDS_PER_SHARD) as writer:
            for *sides, hashes, texts, encoded in self._blocks(
                spool, bool(counters), masker
            ):
                rows = np.arange(row, row + len(sides[0]))
                row += len(rows)
                fits = _longest_side(sides) <= max_tokens
                kept = ~np.isin(rows, held_out_rows)
                rejected = {"length": kept & ~fits}
                kept &= fits
                if alignment is not None:
                    misaligned = np.zeros(len(rows), bool)
                    misaligned[kept] = alignment.misaligned(
                        rows[kept],
                        *(itertools.compress(side, kept) for side in sides),
                    )
                    rejected["misaligned"] = misaligned
                    kept &= ~misaligned
                for reason, places in rejected.items():
                    for place in np.flatnonzero(places).tolist():
                        pair = tuple(side[place] for side in texts)
                        pieces = tuple(len(side[place]) for side in sides)
                        leave_out(int(rows[place]), reason, pair, pieces)
                sides, texts, encoded = (
                    [list(itertools.compress(side, kept)) for side in both]
                    for both in (sides, texts, encoded)
                )
                masked += sum(map(operator.ne, texts[0], encoded[0]))
                self._unknown.add("train", _by_side(sides, encoded))
                for pair in zip(*sides, strict=True):
                    writer.write(*pair)
                corpora = np.searchsorted(ends, rows[kept], side="right")
                written += np.bincount(corpora, minlength=len(written))
                for counter in counters.values():
                    counter.add(*(side[kept] for side in hashes))
        for split, counter in counters.items():
            self._record_leakage(f"train_{split}", counter)
        masks = {"masked_pairs": masked} if masker else {}
        return {**writer.summary, **masks}, written.tolist()

    def _blocks(
        self, spool: Spool, hashed: bool, masker: PairMasker | None = None
    ):
        for block in encode_blocks(spool, self._tokenizers, hashed, masker):
            yield block
            self._progress(len(block[0]))

    def _record_leakage(self, name: str, counter: LeakageCounter):
        self.leakage[name] = counter.pairs
        self.leakage[f"{name}_source"] = counter.sources


def _by_side(sides, texts) -> dict[str, tuple]:
    pairs = zip(sides, texts, strict=True)
    return dict(zip(("source", "target"), pairs, strict=True))


def _longest_side(sides) -> np.ndarray:
    lengths = [[len(ids) for ids in side] for side in sides]
    return np.max(np.array(lengths, "int64"), axis=0)
