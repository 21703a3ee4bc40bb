"""The second pass of `prepare`: from temporary files to shards of ids."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from keras_deepnmt.data.preparation.filter_warnings import NUM_EXAMPLES
from keras_deepnmt.data.preparation.leakage import LeakageCounter, hash_pairs
from keras_deepnmt.data.preparation.shard_writer import ShardWriter
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.threads import num_cores, results_in_order

# The writer keeps the index of a whole shard in memory, so shards are small.
RECORDS_PER_SHARD = 32_768


def encode_blocks(
    spool: Spool, tokenizers: tuple[Tokenizer, Tokenizer], hashed: bool
) -> Iterator[tuple]:
    """Tokenizes a spool on all cores, in the order of its pairs.

    Yields `(source ids, target ids, hashes)` per block; hashes are those of
    `hash_pairs`, or `None` unless `hashed` is true.
    """

    def encode(block):
        hashes = hash_pairs(*block) if hashed else None
        source_ids, target_ids = (
            tokenizer.encode(side)
            for tokenizer, side in zip(tokenizers, block, strict=True)
        )
        return source_ids, target_ids, hashes

    # Threads suffice, since SentencePiece releases the GIL; processes would
    # each import TensorFlow.
    calls = (partial(encode, block) for block in spool.blocks())
    yield from results_in_order(calls, num_cores())


class PairEncoder:
    """Writes the shards of each split and counts leakage between splits.

    Held-out splits must be encoded before the training split. `progress` is
    called with the number of pairs encoded since its last call. `too_long` has
    the row of the spool and the two lengths of the first training pairs that
    were left out for their length.
    """

    def __init__(
        self,
        folder: Path,
        tokenizers: tuple[Tokenizer, Tokenizer],
        progress=lambda pairs: None,
    ):
        self.leakage: dict[str, int] = {}
        self.too_long: list[tuple[int, int, int]] = []
        self._folder = folder
        self._tokenizers = tokenizers
        self._progress = progress
        self._held_out_hashes: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def encode_held_out(self, split: str, spool: Spool) -> dict:
        """Encodes a valid or test split and returns its manifest entry."""
        hashes = []
        with ShardWriter(self._folder, split, RECORDS_PER_SHARD) as writer:
            for sources, targets, block in self._blocks(spool, True):
                hashes.append(block)
                for pair in zip(sources, targets, strict=True):
                    writer.write(*pair)
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
    ) -> tuple[dict, list[int], int]:
        """Encodes the training split.

        `corpus_pairs` are the numbers of pairs of each corpus in the spool,
        `held_out_rows` the rows of the spool to leave out. Pairs with more than
        `max_tokens` ids on a side are left out too. Returns the manifest entry,
        the number of pairs written of each corpus, and the number left out for
        their length.
        """
        counters = {
            split: LeakageCounter(*hashes)
            for split, hashes in self._held_out_hashes.items()
        }
        held_out_rows = np.unique(np.asarray(held_out_rows, "int64"))
        ends = np.cumsum(corpus_pairs)
        written = np.zeros(len(corpus_pairs), "int64")
        row, too_long = 0, 0
        with ShardWriter(self._folder, "train", RECORDS_PER_SHARD) as writer:
            for *sides, hashes in self._blocks(spool, bool(counters)):
                rows = np.arange(row, row + len(sides[0]))
                row += len(rows)
                fits = _longest_side(sides) <= max_tokens
                kept = ~np.isin(rows, held_out_rows)
                too_long += int((kept & ~fits).sum())
                self._note_too_long(rows, kept & ~fits, sides)
                kept &= fits
                for place in np.flatnonzero(kept).tolist():
                    writer.write(sides[0][place], sides[1][place])
                corpora = np.searchsorted(ends, rows[kept], side="right")
                written += np.bincount(corpora, minlength=len(written))
                for counter in counters.values():
                    counter.add(*(side[kept] for side in hashes))
        for split, counter in counters.items():
            self._record_leakage(f"train_{split}", counter)
        return writer.summary, written.tolist(), too_long

    def _note_too_long(self, rows, left_out, sides):
        for place in np.flatnonzero(left_out).tolist():
            if len(self.too_long) == NUM_EXAMPLES:
                return
            lengths = (len(side[place]) for side in sides)
            self.too_long.append((int(rows[place]), *lengths))

    def _blocks(self, spool: Spool, hashed: bool):
        for block in encode_blocks(spool, self._tokenizers, hashed):
            yield block
            self._progress(len(block[0]))

    def _record_leakage(self, name: str, counter: LeakageCounter):
        self.leakage[name] = counter.pairs
        self.leakage[f"{name}_source"] = counter.sources


def _longest_side(sides) -> np.ndarray:
    lengths = [[len(ids) for ids in side] for side in sides]
    return np.max(np.array(lengths, "int64"), axis=0)
