"""The second pass of `prepare`: from temporary files to shards of ids."""

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.context import mark_id, shorten_context, tag_length
from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.block_maps import (
    BlockMap,
    map_in_threads,
)
from keras_deepnmt.data.preparation.case_examples import CaseExamples
from keras_deepnmt.data.preparation.leakage import LeakageCounter, hash_pairs
from keras_deepnmt.data.preparation.pair_masking import PairMasker
from keras_deepnmt.data.preparation.shard_writer import (
    MAX_PAIR_LENGTH,
    ShardWriter,
)
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.preparation.unknown_tokens import UnknownTokens
from keras_deepnmt.data.tags import tagged_text, untagged_text
from keras_deepnmt.data.tokenizers import Tokenizer

# The writer keeps the index of a whole shard in memory, so shards are small.
RECORDS_PER_SHARD = 32_768


class EncodedBlock(NamedTuple):
    """A block of pairs as texts and as ids.

    `given` are its sources and targets as they are in the corpus, and `read`
    those with the tags of the corpora, which `ids` stand for. `hashes` are
    those of `hash_pairs` for the given texts, also without tags that stand in
    them, and `untagged` the ids of the sources without the tags of the corpora;
    each is `None` unless it was asked for. `masked` says which pairs a masker
    changed before they got tags.
    """

    given: tuple[list[str], list[str]]
    read: tuple[list[str], list[str]]
    ids: tuple[list[np.ndarray], list[np.ndarray]]
    hashes: tuple[np.ndarray, np.ndarray] | None
    untagged: list[np.ndarray] | None
    masked: np.ndarray


class BlockEncoder:
    """Tokenizes the pairs of a block.

    Args:
        tokenizers: of both sides.
        hashed: whether `EncodedBlock.hashes` are asked for.
        untagged: whether `EncodedBlock.untagged` are.
        known_tags: all that may stand in a text.
        masker: changes what is encoded, or `None`.
    """

    def __init__(
        self,
        tokenizers: tuple[Tokenizer, Tokenizer],
        hashed: bool,
        untagged: bool = False,
        known_tags: Sequence[str] = (),
        masker: PairMasker | None = None,
    ):
        self._tokenizers = tokenizers
        self._hashed = hashed
        self._untagged = untagged
        self._known_tags = known_tags
        self._masker = masker

    def __call__(
        self,
        row: int,
        block: tuple[list[str], list[str]],
        tags: list[str | None],
    ) -> EncodedBlock:
        """Tokenizes successive pairs from a row on, with their tags."""
        masker, tokenizers = self._masker, self._tokenizers
        texts = masker.mask_block(row, *block) if masker else block
        masked = np.array([*map(operator.ne, texts[0], block[0])], bool)
        read = list(map(tagged_text, texts[0], tags)), texts[1]
        ids = tuple(
            tokenizer.encode(side)
            for tokenizer, side in zip(tokenizers, read, strict=True)
        )
        plain = None
        if self._untagged:
            # The same where no pair of the block has a tag.
            plain = tokenizers[0].encode(texts[0]) if any(tags) else ids[0]
        hashes = None
        if self._hashed:
            compared = block[0]
            if self._known_tags:
                compared = [
                    untagged_text(s, self._known_tags) for s in block[0]
                ]
            hashes = hash_pairs(compared, block[1])
        return EncodedBlock(block, read, ids, hashes, plain, masked)


class PairEncoder:
    """Writes the shards of each split and counts leakage between splits.

    Held-out splits must be encoded before the training split. `progress` is
    called with the number of pairs encoded since its last call, and `unknown`
    counts the unknown tokens of the pairs that are written. `known_tags` are
    those of all corpora. `map_blocks` calls `BlockEncoder`. `too_long` has
    the sides of held-out pairs that no shard can hold: the split, the row, the
    side (0 or 1) and the number of ids of each.
    """

    def __init__(
        self,
        folder: Path,
        tokenizers: tuple[Tokenizer, Tokenizer],
        unknown: UnknownTokens,
        progress=lambda pairs: None,
        known_tags: Sequence[str] = (),
        map_blocks: BlockMap = map_in_threads,
    ):
        self._map_blocks = map_blocks
        self.leakage: dict[str, int] = {}
        self.too_long: list[tuple[str, int, int, int]] = []
        self._folder = folder
        self._tokenizers = tokenizers
        self._mark = mark_id(tokenizers[0])
        self._unknown = unknown
        self._progress = progress
        self._known_tags = known_tags
        self._held_out_hashes: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def encode_held_out(self, split: str, spool: Spool) -> dict:
        """Encodes a valid or test split and returns its manifest entry."""
        hashes, row = [], 0
        with ShardWriter(self._folder, split, RECORDS_PER_SHARD) as writer:
            for block in self._blocks(spool, True):
                hashes.append(block.hashes)
                self._unknown.add(split, _by_side(block.ids, block.read))
                for pair in zip(*block.ids, strict=True):
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
        case_examples: CaseExamples,
        alignment: AlignmentFilter | None = None,
        masker: PairMasker | None = None,
    ) -> tuple[dict, list[int]]:
        """Encodes the training split.

        `corpus_pairs` are the numbers of pairs of each corpus in the spool,
        `held_out_rows` the rows of the spool to leave out. Pairs with more than
        `max_tokens` ids on a side, the tag included, are left out too, unless
        they have a context that can be shorter:
        `leave_out` is called with the row, the reason, the two given texts and
        their two numbers of ids. So are those that `alignment` finds to be
        misaligned, whose sources it reads without tags. After a pair come its
        `case_examples` that have at most `max_tokens` ids on a side. Returns
        the manifest entry and the number of pairs written of each corpus,
        examples included. `masker` changes what is encoded, and the entry then
        has the number of the pairs that it changed.
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
            for block in self._blocks(
                spool, bool(counters), alignment is not None, masker
            ):
                rows = np.arange(row, row + len(block.ids[0]))
                row += len(rows)
                block = self._with_shorter_context(
                    block, rows, spool, max_tokens
                )
                fits = _longest_side(block.ids) <= max_tokens
                kept = ~np.isin(rows, held_out_rows)
                rejected = {"length": kept & ~fits}
                kept &= fits
                if alignment is not None:
                    misaligned = np.zeros(len(rows), bool)
                    misaligned[kept] = alignment.misaligned(
                        rows[kept],
                        *(
                            itertools.compress(side, kept)
                            for side in (block.untagged, block.ids[1])
                        ),
                    )
                    rejected["misaligned"] = misaligned
                    kept &= ~misaligned
                for reason, places in rejected.items():
                    for place in np.flatnonzero(places).tolist():
                        pair = tuple(side[place] for side in block.given)
                        pieces = tuple(len(side[place]) for side in block.ids)
                        leave_out(int(rows[place]), reason, pair, pieces)
                examples = self._case_examples(
                    case_examples, int(rows[0]), block.read, kept, max_tokens
                )
                sides, texts = (
                    [list(itertools.compress(side, kept)) for side in both]
                    for both in (block.ids, block.read)
                )
                masked += int(block.masked[kept].sum())
                self._unknown.add("train", _by_side(sides, texts))
                for place, *pair in zip(
                    rows[kept].tolist(), *sides, strict=True
                ):
                    writer.write(*pair)
                    for example in examples.get(place, ()):
                        writer.write(*example)
                counts = [
                    1 + len(examples.get(row, ())) for row in rows.tolist()
                ]
                corpora = np.searchsorted(ends, rows[kept], side="right")
                written += np.bincount(
                    corpora, np.array(counts)[kept], len(written)
                ).astype("int64")
                for counter in counters.values():
                    counter.add(*(side[kept] for side in block.hashes))
        for split, counter in counters.items():
            self._record_leakage(f"train_{split}", counter)
        masks = {"masked_pairs": masked} if masker else {}
        return {**writer.summary, **masks}, written.tolist()

    def _with_shorter_context(self, block, rows, spool, max_tokens):
        """Leaves out the first sentences of contexts that are too long."""
        if self._mark is None:
            return block
        tokenizer = self._tokenizers[0]
        shorter = [
            shorten_context(
                ids, max_tokens, self._mark, tag_length(tokenizer, tag)
            )
            if len(ids) > max_tokens
            else ids
            for ids, tag in zip(block.ids[0], spool.tags(rows), strict=True)
        ]
        return block._replace(ids=(shorter, block.ids[1]))

    def _case_examples(self, case_examples, first_row, texts, kept, max_tokens):
        """Returns the ids of the examples of a block, by the pair's row."""
        pairs = list(zip(*texts, strict=True))
        drawn = [
            example
            for example in case_examples.of(first_row, pairs)
            if kept[example[0]]
        ]
        sides = [
            tokenizer.encode([texts[side] for _, _, texts in drawn])
            for side, tokenizer in enumerate(self._tokenizers)
        ]
        found: dict[int, list] = {}
        for (place, name, _), *pair in zip(drawn, *sides, strict=True):
            if max(map(len, pair)) <= max_tokens:
                found.setdefault(first_row + place, []).append(pair)
                case_examples.counts[name] += 1
        return found

    def _blocks(
        self,
        spool: Spool,
        hashed: bool,
        untagged: bool = False,
        masker: PairMasker | None = None,
    ):
        def calls():
            row = 0
            for block in spool.blocks():
                end = row + len(block[0])
                yield row, block, spool.tags(np.arange(row, end))
                row = end

        made_of = (
            *(self._tokenizers, hashed, untagged),
            *(self._known_tags, masker),
        )
        # Threads suffice, since SentencePiece releases the GIL; processes of
        # this machine would each import TensorFlow.
        for block in self._map_blocks(BlockEncoder, made_of, calls()):
            yield block
            self._progress(len(block.ids[0]))

    def _record_leakage(self, name: str, counter: LeakageCounter):
        self.leakage[name] = counter.pairs
        self.leakage[f"{name}_source"] = counter.sources


def _by_side(sides, texts) -> dict[str, tuple]:
    pairs = zip(sides, texts, strict=True)
    return dict(zip(("source", "target"), pairs, strict=True))


def _longest_side(sides) -> np.ndarray:
    lengths = [[len(ids) for ids in side] for side in sides]
    return np.max(np.array(lengths, "int64"), axis=0)
