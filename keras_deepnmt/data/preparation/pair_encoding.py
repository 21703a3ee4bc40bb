"""The second pass of `prepare`: from temporary files to shards of ids."""

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.context import (
    mark_id,
    shorten_context,
    tag_length,
    without_context,
)
from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.block_maps import (
    BlockMap,
    map_in_threads,
)
from keras_deepnmt.data.preparation.case_examples import CaseExamples
from keras_deepnmt.data.preparation.given_alignments import (
    Links,
    read_spooled,
)
from keras_deepnmt.data.preparation.leakage import LeakageCounter, hash_pairs
from keras_deepnmt.data.preparation.pair_masking import PairMasker
from keras_deepnmt.data.preparation.shard_writer import (
    MAX_PAIR_LENGTH,
    ShardWriter,
)
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.preparation.unknown_tokens import UnknownTokens
from keras_deepnmt.data.tags import (
    TagSide,
    own_tag,
    split_tags,
    tagged_text,
    untagged_text,
)
from keras_deepnmt.data.token_links import LinkWriter, token_links
from keras_deepnmt.data.tokenizers import Tokenizer

# The writer keeps the index of a whole shard in memory, so shards are small.
RECORDS_PER_SHARD = 32_768
_SIDES = ("source", "target")


class EncodedBlock(NamedTuple):
    """A block of pairs as texts and as ids.

    `given` are its sources and targets as they are in the corpus, and `read`
    those with their `tags`, which `ids` stand for. `hashes` are those of
    `hash_pairs` for the given texts, without their context and without tags
    that stand in them, and `given_ids` what the given texts stand for; each is
    `None` unless it was asked for. `masked` says which pairs a masker changed
    before they got tags. `words` are the links between the words of each pair,
    and `links` those between its tokens, as `token_links` returns them; both
    are `None` without given alignments.
    """

    given: tuple[list[str], list[str]]
    read: tuple[list[str], list[str]]
    ids: tuple[list[np.ndarray], list[np.ndarray]]
    hashes: tuple[np.ndarray, np.ndarray] | None
    given_ids: tuple[list[np.ndarray], ...] | None
    masked: np.ndarray
    tags: list[str | None]
    words: list[Links] | None = None
    links: list[np.ndarray] | None = None


class BlockEncoder:
    """Tokenizes the pairs of a block.

    `hashed` and `with_given_ids` say whether `EncodedBlock.hashes` and
    `EncodedBlock.given_ids` are asked for. `known_tags` are all that may stand
    in a text. The `tag_side` gets the tags; if it is the target, it also gets
    those that stand in sources. A `masker` changes what is encoded.
    """

    def __init__(
        self,
        tokenizers: tuple[Tokenizer, Tokenizer],
        hashed: bool,
        with_given_ids: bool = False,
        known_tags: Sequence[str] = (),
        masker: PairMasker | None = None,
        tag_side: TagSide = "source",
    ):
        self._tag_side = tag_side
        self._tokenizers = tokenizers
        self._has_context = mark_id(tokenizers[0]) is not None
        self._hashed = hashed
        self._with_given_ids = with_given_ids
        self._known_tags = known_tags
        self._masker = masker

    def __call__(
        self,
        row: int,
        block: tuple[list[str], list[str]],
        tags: list[str | None],
        alignments: list[Links] | None = None,
    ) -> EncodedBlock:
        """Tokenizes successive pairs from a row on, with their tags.

        `alignments` are the links between the words of each pair.
        """
        masker, tokenizers = self._masker, self._tokenizers
        texts = masker.mask_block(row, *block) if masker else block
        masked = np.array([*map(operator.ne, texts[0], block[0])], bool)
        if self._tag_side == "target":
            texts, tags, alignments = self._moved_tags(texts, tags, alignments)
        number = _SIDES.index(self._tag_side)
        read, given_ids = list(texts), None
        read[number] = list(map(tagged_text, texts[number], tags))
        ids = [
            tokenizer.encode(side)
            for tokenizer, side in zip(tokenizers, read, strict=True)
        ]
        if self._with_given_ids:
            given_ids = tuple(
                known if shown == given else tokenizer.encode(given)
                for known, shown, given, tokenizer in zip(
                    ids, read, block, tokenizers, strict=True
                )
            )
        hashes = None
        if self._hashed:
            compared = block[0]
            if self._has_context:
                compared = list(map(without_context, compared))
            if self._known_tags:
                compared = [
                    untagged_text(s, self._known_tags) for s in compared
                ]
            hashes = hash_pairs(compared, block[1])
        links = None
        if alignments is not None:
            links = [
                token_links(
                    tokenizers, pair, words, tag_starts(tag, self._tag_side)
                )
                for words, tag, *pair in zip(
                    alignments, tags, *read, strict=True
                )
            ]
        return EncodedBlock(
            *(block, tuple(read), tuple(ids), hashes, given_ids, masked),
            *(tags, alignments, links),
        )

    def _moved_tags(self, texts, tags, alignments):
        """Takes the tags off sources whose corpus has none."""
        plain, own = split_tags(texts[0], self._known_tags)
        moved = [
            tag is None and one is not None
            for tag, one in zip(tags, own, strict=True)
        ]
        sources = [
            one if is_moved else text
            for text, one, is_moved in zip(texts[0], plain, moved, strict=True)
        ]
        tags = [tag or one for tag, one in zip(tags, own, strict=True)]
        if alignments is not None:
            # In the file the tag is the first word.
            alignments = [
                [(a - 1, b) for a, b in links if a] if is_moved else links
                for links, is_moved in zip(alignments, moved, strict=True)
            ]
        return (sources, texts[1]), tags, alignments


def tag_starts(tag: str | None, side: TagSide) -> tuple[int, int]:
    """Returns how many characters of a source and a target are its tag.

    Example:
    >>> tag_starts("<2de>", "target")
    (0, 5)
    """
    length = len(tag or "")
    return (length, 0) if side == "source" else (0, length)


class PairEncoder:
    """Writes the shards of each split and counts leakage between splits.

    Held-out splits must be encoded before the training split. `progress` is
    called with the number of pairs encoded since its last call, and `unknown`
    counts the unknown tokens of the pairs that are written. `known_tags` are
    those of all corpora. `map_blocks` calls `BlockEncoder`. `too_long` has
    the sides of held-out pairs that no shard can hold: the split, the row, the
    side (0 or 1) and the number of ids of each. `tag_side` is that of the
    tags.
    """

    def __init__(
        self,
        folder: Path,
        tokenizers: tuple[Tokenizer, Tokenizer],
        unknown: UnknownTokens,
        progress=lambda pairs: None,
        known_tags: Sequence[str] = (),
        map_blocks: BlockMap = map_in_threads,
        tag_side: TagSide = "source",
    ):
        self._map_blocks = map_blocks
        self._tag_side = tag_side
        self.leakage: dict[str, int] = {}
        self.too_long: list[tuple[str, int, int, int]] = []
        self._folder = folder
        self._tokenizers = tokenizers
        self._mark = mark_id(tokenizers[0])
        self._unknown = unknown
        self._progress = progress
        self._known_tags = known_tags
        self._held_out_hashes: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def encode_held_out(
        self, split: str, spool: Spool, max_tokens: int
    ) -> dict:
        """Encodes a valid or test split and returns its manifest entry.

        Contexts are shortened to `max_tokens` ids, as those of training are;
        no pair is left out.
        """
        hashes, row = [], 0
        with ShardWriter(self._folder, split, RECORDS_PER_SHARD) as writer:
            for block in self._blocks(spool, True):
                hashes.append(block.hashes)
                block = self._with_shorter_context(block, max_tokens)
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
        alignments: Path | None = None,
    ) -> tuple[dict, list[int]]:
        """Encodes the training split.

        `corpus_pairs` are the numbers of pairs of each corpus in the spool,
        `held_out_rows` the rows of the spool to leave out. Pairs with more than
        `max_tokens` ids on a side, the tag included, are left out too, unless
        they have a context that can be shorter:
        `leave_out` is called with the row, the reason, the two given texts and
        their two numbers of ids. So are those that `alignment` finds to be
        misaligned, by the given texts, since it has learned from them. After a
        pair come its `case_examples` that have at most `max_tokens` ids on a
        side. Returns the manifest entry and the number of pairs written of each
        corpus, examples included. `masker` changes what is encoded, and the
        entry then has the number of the pairs that it changed. `alignments` is
        a file of `spool_alignments`, whose links are written beside the shards;
        the entry then has the number of the pairs with links.
        """
        counters = {
            split: LeakageCounter(*hashes)
            for split, hashes in self._held_out_hashes.items()
        }
        held_out_rows = np.unique(np.asarray(held_out_rows, "int64"))
        ends = np.cumsum(corpus_pairs)
        written = np.zeros(len(corpus_pairs), "int64")
        row = masked = 0
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(
                ShardWriter(self._folder, "train", RECORDS_PER_SHARD)
            )
            link_writer = alignments and stack.enter_context(
                LinkWriter(self._folder)
            )
            for block in self._blocks(
                spool, bool(counters), alignment is not None, masker, alignments
            ):
                rows = np.arange(row, row + len(block.ids[0]))
                row += len(rows)
                block = self._with_shorter_context(block, max_tokens)
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
                            for side in block.given_ids
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
                    case_examples, rows, block, kept, max_tokens
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
                    found = block.links and block.links[place - rows[0]]
                    for *ids, links in (
                        (*pair, found),
                        *examples.get(place, ()),
                    ):
                        writer.write(*ids)
                        if link_writer:
                            link_writer.write(links)
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
        entry = dict(writer.summary)
        if masker:
            entry["masked_pairs"] = masked
        if link_writer:
            entry["aligned_pairs"] = link_writer.pairs
        return entry, written.tolist()

    def _with_shorter_context(self, block, max_tokens):
        sources, targets = block.ids
        shorter = self._shortened(block, sources, block.read[0], max_tokens)
        return block._replace(ids=(shorter, targets))

    def _shortened(self, block, sources, read, max_tokens):
        """Does so for the ids of some sources, whose texts begin with tags."""
        # Pairs with alignments have no context.
        if self._mark is None or block.links is not None:
            return sources
        return [
            shorten_context(
                ids,
                max_tokens,
                self._mark,
                tag_length(
                    self._tokenizers[0], own_tag(text, self._known_tags)
                ),
            )
            if len(ids) > max_tokens
            else ids
            for ids, text in zip(sources, read, strict=True)
        ]

    def _case_examples(self, case_examples, rows, block, kept, max_tokens):
        """Returns ids and links of a block's examples, by the pair's row."""
        first_row = int(rows[0])
        pairs = list(zip(*block.read, strict=True))
        drawn = [
            example
            for example in case_examples.of(first_row, pairs)
            if kept[example[0]]
        ]
        sides = [
            tokenizer.encode([texts[side] for _, _, texts in drawn])
            for side, tokenizer in enumerate(self._tokenizers)
        ]
        read = [block.read[0][place] for place, _, _ in drawn]
        sides[0] = self._shortened(block, sides[0], read, max_tokens)
        found: dict[int, list] = {}
        for (place, name, texts), *pair in zip(drawn, *sides, strict=True):
            if max(map(len, pair)) <= max_tokens:
                links = block.words and token_links(
                    self._tokenizers,
                    texts,
                    block.words[place],
                    tag_starts(block.tags[place], self._tag_side),
                )
                found.setdefault(first_row + place, []).append((*pair, links))
                case_examples.counts[name] += 1
        return found

    def _blocks(
        self,
        spool: Spool,
        hashed: bool,
        with_given_ids: bool = False,
        masker: PairMasker | None = None,
        alignments: Path | None = None,
    ):
        links = None if alignments is None else read_spooled(alignments)

        def calls():
            row = 0
            for block in spool.blocks():
                end = row + len(block[0])
                words = links and list(itertools.islice(links, end - row))
                yield row, block, spool.tags(np.arange(row, end)), words
                row = end

        made_of = (
            *(self._tokenizers, hashed, with_given_ids),
            *(self._known_tags, masker, self._tag_side),
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
