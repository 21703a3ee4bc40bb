"""The second pass of `prepare`: from a spool of pairs to shards of ids."""

import collections
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from keras_deepnmt.data.preparation.leakage import LeakageCounter, pair_hashes
from keras_deepnmt.data.preparation.shard_writer import ShardWriter
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.tokenizers import Tokenizer

# The writer buffers a shard's worth of index: small shards, little memory.
RECORDS_PER_SHARD = 32_768


def encoded_blocks(
    spool: Spool, tokenizers: tuple[Tokenizer, Tokenizer], hashed: bool
) -> Iterator[tuple]:
    """Tokenises a spool with all cores, in order.

    Args:
        spool: The pairs.
        tokenizers: Tokenizers of the source and of the target.
        hashed: Whether to hash the pairs too.

    Yields:
        `(source ids, target ids, hashes)` for some thousand pairs; hashes are
        those of `pair_hashes`, or `None`.
    """

    def encode(block):
        hashes = pair_hashes(*block) if hashed else None
        source_ids, target_ids = (
            tokenizer.encode(side)
            for tokenizer, side in zip(tokenizers, block, strict=True)
        )
        return source_ids, target_ids, hashes

    # Threads are enough, and start no second TensorFlow: SentencePiece works
    # outside the interpreter's lock. The queue is short so that memory is.
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting = collections.deque()
        for block in spool.blocks():
            waiting.append(pool.submit(encode, block))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class PairEncoder:
    """Writes the shards of each split and counts leakage between them.

    Held-out splits must be encoded before the training split.

    Args:
        folder: Folder of the shards.
        tokenizers: Tokenizers of the source and of the target.
        progress: Called with the number of pairs done since the last call.
    """

    def __init__(
        self,
        folder: Path,
        tokenizers: tuple[Tokenizer, Tokenizer],
        progress=lambda pairs: None,
    ):
        self.leakage: dict[str, int] = {}
        self._folder = folder
        self._tokenizers = tokenizers
        self._progress = progress
        self._held_out: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def held_out(self, split: str, spool: Spool) -> dict:
        """Encodes a valid or test split, every pair of it.

        Args:
            split: Its name.
            spool: Its pairs.

        Returns:
            Its entry for the manifest.
        """
        hashes = []
        with ShardWriter(self._folder, split, RECORDS_PER_SHARD) as writer:
            for sources, targets, block in self._blocks(spool, True):
                hashes.append(block)
                for pair in zip(sources, targets, strict=True):
                    writer.write(*pair)
        self._held_out[split] = tuple(
            np.concatenate(side) for side in zip(*hashes, strict=True)
        )
        if split == "test" and "valid" in self._held_out:
            counter = LeakageCounter(*self._held_out["test"])
            counter.see(*self._held_out["valid"])
            self._record("valid_test", counter)
        return writer.summary

    def train(
        self,
        spool: Spool,
        corpus_pairs: list[int],
        held_out_rows: Iterable[int],
        max_tokens: int,
    ) -> tuple[dict, list[int], int]:
        """Encodes the training split.

        Args:
            spool: Its pairs, corpus after corpus.
            corpus_pairs: Pairs of each corpus in the spool.
            held_out_rows: Rows of the spool to leave out.
            max_tokens: Most ids of a side.

        Returns:
            Its entry for the manifest, the pairs written of each corpus and
            the number of pairs left out for their length.
        """
        counters = {
            split: LeakageCounter(*hashes)
            for split, hashes in self._held_out.items()
        }
        held_out_rows = np.unique(np.asarray(held_out_rows, "int64"))
        ends = np.cumsum(corpus_pairs)
        written = np.zeros(len(corpus_pairs), "int64")
        row, too_long = 0, 0
        with ShardWriter(self._folder, "train", RECORDS_PER_SHARD) as writer:
            for *sides, hashes in self._blocks(spool, bool(counters)):
                rows = np.arange(row, row + len(sides[0]))
                row += len(rows)
                fits = _longest(sides) <= max_tokens
                kept = ~np.isin(rows, held_out_rows)
                too_long += int((kept & ~fits).sum())
                kept &= fits
                for place in np.flatnonzero(kept).tolist():
                    writer.write(sides[0][place], sides[1][place])
                corpora = np.searchsorted(ends, rows[kept], side="right")
                written += np.bincount(corpora, minlength=len(written))
                for counter in counters.values():
                    counter.see(*(side[kept] for side in hashes))
        for split, counter in counters.items():
            self._record(f"train_{split}", counter)
        return writer.summary, written.tolist(), too_long

    def _blocks(self, spool: Spool, hashed: bool):
        for block in encoded_blocks(spool, self._tokenizers, hashed):
            yield block
            self._progress(len(block[0]))

    def _record(self, name: str, counter: LeakageCounter):
        self.leakage[name] = counter.pairs
        self.leakage[f"{name}_source"] = counter.sources


def _longest(sides) -> np.ndarray:
    lengths = [[len(ids) for ids in side] for side in sides]
    return np.max(np.array(lengths, "int64"), axis=0)
