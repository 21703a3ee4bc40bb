"""Writes all files of a prepared folder."""

import itertools
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.progress import Progress

from keras_deepnmt.data.context import mark_id, without_context
from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.manifest import (
    FORMAT,
    read_manifest,
    text_file,
    write_manifest,
    written_hashes,
)
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.bad_lines import BadLines
from keras_deepnmt.data.preparation.block_maps import (
    BlockMap,
    map_here,
    map_in_threads,
)
from keras_deepnmt.data.preparation.case_examples import (
    DEFAULT_SHARE,
    CaseExamples,
)
from keras_deepnmt.data.preparation.filter_warnings import LeftOut
from keras_deepnmt.data.preparation.given_alignments import spool_alignments
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.language_filter import LanguageFilters
from keras_deepnmt.data.preparation.leakage import hash_unordered
from keras_deepnmt.data.preparation.options import HELD_OUT, PrepareOptions
from keras_deepnmt.data.preparation.own_filters import filter_code
from keras_deepnmt.data.preparation.pair_encoding import PairEncoder
from keras_deepnmt.data.preparation.pair_masking import PairMasker
from keras_deepnmt.data.preparation.pair_reading import PairReader
from keras_deepnmt.data.preparation.rejected_pairs import RejectedPairs
from keras_deepnmt.data.preparation.shard_writer import MAX_PAIR_LENGTH
from keras_deepnmt.data.preparation.shortlist_learning import learn_shortlists
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.preparation.tokenizer_making import TokenizerMaker
from keras_deepnmt.data.preparation.unknown_tokens import UnknownTokens
from keras_deepnmt.data.shortlists import SHORTLIST_FILE
from keras_deepnmt.data.tags import begins_with_tag, tagged_text, untagged_text
from keras_deepnmt.data.token_links import ENDS_FILE, LINKS_FILE
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.file_tables import file_table
from keras_deepnmt.files import file_sha256


class FolderWriter:
    """Runs the steps that write a prepared folder.

    `corpora` gives the corpora of each split, and `maker` the tokenizers;
    `folder` must exist and be empty; `bars` shows the progress, `rejected`
    receives the pairs that are left out, and `languages` decide about their
    languages, if they are given; so do `own_filters` for reasons of the user.
    `map_blocks` calls the steps that see one block at a time. `warnings`
    receives what the user should be told at the end, also after an error.
    """

    def __init__(
        self,
        options: PrepareOptions,
        corpora: dict[str, list[CorpusFiles]],
        maker: TokenizerMaker,
        folder: Path,
        bars: Progress,
        rejected: RejectedPairs,
        warnings: list[str],
        languages: LanguageFilters | None,
        own_filters: dict[str, Callable],
        map_blocks: BlockMap | None = None,
    ):
        self.options = options
        self.corpora = corpora
        self.maker = maker
        self.folder = folder
        self.bars = bars
        self.rejected = rejected
        self.languages = languages
        self.own_filters = own_filters
        self.map_blocks = map_blocks
        self.warnings = warnings
        self.bad_lines = BadLines(options.errors)
        # The corpora that could not be read, in a message each.
        self.unreadable: list[str] = []
        # The pairs that each corpus of a split has lost.
        self.left_out: dict[str, list[LeftOut]] = {}
        self.spools: dict[str, Spool] = {}
        self.entries: list[dict] = []
        self.filters: dict[str, dict] = {}
        self.held_out_rows = np.zeros(0, "int64")
        self.spool_folder = folder / "spool"
        self.case_examples = _case_examples(options, maker)

    def write(self) -> dict:
        """Runs all steps and returns the manifest, which is written last."""
        self.spool_folder.mkdir()
        samples = {split: self._read_split(split) for split in self.corpora}
        self._raise_problems()
        alignments = self._spool_alignments()
        self._warn_of_one_tag()
        self._warn_of_tags()
        self._write_held_out(samples["train"])
        source, target = self._make_tokenizers()
        made = {"source": source, "target": target}
        names = self.maker.given_names()
        unknown = UnknownTokens({side: made[side] for side in names}, names)
        splits, leakage = self._write_shards(
            (source, target), unknown, alignments
        )
        shortlist = self._write_shortlist(source, target)
        added = self.maker.extension
        extension = {"extension": added} if added else {}
        code = filter_code(self.options)
        for path in self.spool_folder.iterdir():
            path.unlink()
        self.spool_folder.rmdir()
        manifest = {
            "format": FORMAT,
            "joint": self.options.joint,
            "source_language": self.options.source_language,
            "target_language": self.options.target_language,
            "source_vocabulary_size": source.vocabulary_size,
            "target_vocabulary_size": target.vocabulary_size,
            "tokenizer": {"source": source.sha256, "target": target.sha256},
            "options": asdict(self.options),
            "corpora": self.entries,
            "filters": {split: self.filters[split] for split in splits},
            "splits": splits,
            "leakage": leakage,
            **extension,
            **shortlist,
            **self._links_entry(alignments),
            **({"filter_code": code} if code else {}),
            "versions": _versions(),
        }
        manifest["files"] = table = file_table(self.folder)
        if damaged := [
            name
            for name, sha256 in written_hashes(manifest).items()
            if table.get(name, {}).get("sha256") != sha256
        ]:
            raise UserError(
                f"{self.folder}: {', '.join(damaged)} did not reach the disk "
                "as written. Check the disk and run again."
            )
        write_manifest(self.folder, manifest)
        return read_manifest(self.folder)

    def _read_split(self, split: str) -> HeldOutSample:
        options, corpora = self.options, self.corpora[split]
        train = split == "train"
        sample = HeldOutSample(
            sum(self._held_out_pairs()) if train else 0, options.seed
        )
        reading = self.bars.add_task(f"Reading {split}", total=None)
        # The size of a pipe is not known.
        files = [
            file
            for corpus in corpora
            for file in dict.fromkeys((corpus.source, corpus.target))
        ]
        total = sum(f.stat().st_size for f in files if f.is_file())
        self.bars.update(reading, total=total or None)
        with ExitStack() as stack:
            reader = stack.enter_context(
                PairReader(
                    self.spool_folder,
                    split,
                    corpora,
                    options.reasons(),
                    options.pair_filter if train else None,
                    train and options.drop_duplicates,
                    self.maker.normalizations,
                    sample,
                    self.bad_lines,
                    self.rejected,
                    self.languages if train else None,
                    self.own_filters if train else {},
                    lambda count: self.bars.advance(reading, count),
                    self.map_blocks or map_here,
                    options.context,
                    options.tags(),
                )
            )
            spool = stack.enter_context(self._new_spool(split))
            raw = () if train else self._open_texts(split, stack)
            read = []
            for number in range(len(corpora)):
                with self._noted_errors():
                    read.append(reader.read(number))
            self._find_repetitions(reader, train)
            filtering = self.bars.add_task(
                f"Filtering {split}", total=reader.counts["read"]
            )
            self.left_out[split] = []
            for one in read:
                left_out = LeftOut(
                    str(one.corpus.source),
                    options if train else None,
                    one.corpus.direction,
                )
                with self._noted_errors():
                    entry = reader.keep(
                        *(one, spool, left_out, raw),
                        lambda count: self.bars.advance(filtering, count),
                    )
                    self.entries.append({"split": split, **entry})
                    self._warn_of_skipped(entry)
                    self.left_out[split].append(left_out)
        self.spools[split] = spool
        self.filters[split] = {**reader.counts, "kept": spool.pairs}
        return sample

    @contextmanager
    def _noted_errors(self) -> Iterator[None]:
        """Notes that a corpus could not be read, to report all at once."""
        try:
            yield
        except UserError as error:
            self.unreadable.append(str(error))

    def _find_repetitions(self, reader, train):
        if train and self.options.drop_duplicates:
            task = self.bars.add_task("Finding repetitions", total=1.0)
            reader.find_repetitions(lambda done: self.bars.advance(task, done))

    def _warn_of_skipped(self, entry):
        """Says which entries of a file with both sides have no pair."""
        skipped = entry.get("skipped", {})
        if skipped:
            reasons = ", ".join(
                f"{count:,} {reason}" for reason, count in skipped.items()
            )
            self.warnings.append(
                f"{entry['source']}: {sum(skipped.values()):,} of its entries "
                f"are no pairs ({reasons})."
            )

    def _raise_problems(self):
        """Reports all that is wrong with the text of all splits at once."""
        problems = [*self.unreadable, *self.bad_lines.problems()]
        if len(problems) > 1:
            raise UserErrors(problems)
        if problems:
            raise UserError(problems[0])
        self.warnings += self.bad_lines.warnings()
        for split, counts in self.filters.items():
            if not counts["kept"]:
                corpora = self.corpora[split]
                files = [f for c in corpora for f in (c.source, c.target)]
                self._warn_of_filters()
                raise UserError(_no_pairs_message(split, files, counts))

    def _spool_alignments(self) -> Path | None:
        """Checks the given alignments; returns the file that has them all."""
        corpora = self.corpora["train"]
        if not any(corpus.alignments for corpus in corpora):
            return None
        path = self.spool_folder / "train.alignments"
        entries = [e for e in self.entries if e["split"] == "train"]
        lines = [entry["lines"] for entry in entries]
        hashes = spool_alignments(self.spools["train"], corpora, lines, path)
        for number, sha256 in hashes.items():
            file = str(corpora[number].alignments)
            entries[number]["alignments"] = {"file": file, "sha256": sha256}
        return path

    def _links_entry(self, alignments: Path | None) -> dict:
        if alignments is None:
            return {}
        files = (LINKS_FILE, ENDS_FILE)
        hashes = {name: file_sha256(self.folder / name) for name in files}
        return {"links": hashes}

    def _held_out_pairs(self) -> list[int]:
        return [getattr(self.options, f"{name}_pairs") for name in HELD_OUT]

    def _write_held_out(self, sample: HeldOutSample):
        num_pairs = self._held_out_pairs()
        rows, texts = sample.draw()
        kept = self.filters["train"]["kept"]
        if kept <= sum(num_pairs):
            self._warn_of_filters()
            raise UserError(
                "The training text must hold more pairs than are held out of "
                f"it. Received: valid_pairs={num_pairs[0]}, "
                f"test_pairs={num_pairs[1]}, {kept} training pairs."
            )
        self.held_out_rows = self._with_repetitions(rows, texts)
        self.filters["train"] |= {
            "held_out": len(self.held_out_rows),
            "kept": kept - len(self.held_out_rows),
        }
        origins = self.spools["train"].origins(rows)
        start = 0
        for split, count in zip(HELD_OUT, num_pairs, strict=True):
            if not count:
                continue
            drawn = slice(start, start + count)
            start += count
            raw = texts[drawn]
            with ExitStack() as stack:
                spool = stack.enter_context(self._new_spool(split))
                spool.write(raw, origins[drawn])
            self.spools[split] = spool
            tags = spool.tags(np.arange(len(raw)))
            sources, targets = zip(*raw, strict=True)
            with ExitStack() as stack:
                for file, side in zip(
                    self._open_texts(split, stack),
                    (map(tagged_text, sources, tags), targets),
                    strict=True,
                ):
                    file.writelines(f"{text}\n" for text in side)
            self.filters[split] = {
                "read": count,
                **dict.fromkeys(self.options.reasons(), 0),
                "kept": count,
            }

    def _with_repetitions(self, rows: np.ndarray, texts) -> np.ndarray:
        """Adds the rows that have drawn pairs in another form.

        They may be reversed, have another tag, or stand in another context.
        """
        train = self.corpora["train"]
        has_directions = len({(c.direction, c.tag) for c in train}) > 1
        if not len(rows) or not (has_directions or self.options.context):
            return rows
        drawn = set(map(self._hash_of_sentences, texts))
        found, row = [rows], 0
        for block in self.spools["train"].blocks():
            hashes = map(self._hash_of_sentences, zip(*block, strict=True))
            places = [n for n, one in enumerate(hashes) if one in drawn]
            found.append(row + np.array(places, "int64"))
            row += len(block[0])
        return np.unique(np.concatenate(found))

    def _hash_of_sentences(self, pair: tuple[str, str]) -> int:
        """The hash of a pair in both directions, without context and tag."""
        source, target = pair
        if self.options.context:
            source = without_context(source)
        source = untagged_text(source, self.options.tags())
        return hash_unordered((source, target))

    def _new_spool(self, split: str) -> Spool:
        # A split that is drawn is from the training corpora.
        corpora = self.corpora.get(split, self.corpora["train"])
        return Spool(self.spool_folder, split, [c.tag for c in corpora])

    def _warn_of_one_tag(self):
        """Names languages that a model could not be asked for."""
        into: dict[tuple, dict] = {}
        for corpus in self.corpora["train"]:
            source, target = corpus.direction
            if source is not None and target is not None:
                key = (source, corpus.tag)
                into.setdefault(key, {}).setdefault(target, corpus)
        for (source, tag), corpora in into.items():
            # Lines may have tags of their own, which are such symbols.
            may_differ = tag is None and self.options.all_user_defined_symbols()
            if len(corpora) > 1 and not may_differ:
                files = ", ".join(str(one.source) for one in corpora.values())
                self.warnings.append(
                    f"The training corpora {files} translate {source} into "
                    f"{' and '.join(corpora)} with the tag {tag or 'none'}, so "
                    "no model can be told which. Give each language a `tag`."
                )

    def _warn_of_tags(self):
        """Names held-out corpora whose tags differ from those in training."""
        tags = list(dict.fromkeys(c.tag for c in self.corpora["train"]))
        for split in HELD_OUT:
            entries = [e for e in self.entries if e["split"] == split]
            first_lines = itertools.accumulate(
                (entry["pairs"] for entry in entries), initial=0
            )
            for corpus, entry, first_line in zip(
                self.corpora.get(split, ()), entries, first_lines, strict=False
            ):
                place = f"the {split} corpus {corpus.name} ({corpus.source})"
                if corpus.tag not in (None, *tags):
                    self.warnings.append(
                        f"The tag {corpus.tag} of {place} is that of no "
                        "training corpus, so no model learns it. Give it one "
                        f"of {', '.join(filter(None, tags)) or 'none'}."
                    )
                elif corpus.tag is None and None not in tags:
                    if not entry["pairs"]:
                        continue
                    with open(
                        self.folder / text_file(split, "source"),
                        encoding="utf-8",
                        newline="\n",
                    ) as file:
                        # Lines with tags of their own are as they should be.
                        (line,) = itertools.islice(
                            file, first_line, first_line + 1
                        )
                        if begins_with_tag(line, tags):
                            continue
                    self.warnings.append(
                        f"All training corpora have a tag, but {place} has "
                        f"none. Give it one of {', '.join(tags)}."
                    )

    def _open_texts(self, split: str, stack: ExitStack) -> list:
        return [
            stack.enter_context(
                open(
                    self.folder / text_file(split, side),
                    "w",
                    encoding="utf-8",
                    newline="\n",
                )
            )
            for side in ("source", "target")
        ]

    def _make_tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        folder = self.folder / "tokenizer"
        folder.mkdir()
        work = "Extending" if self.options.extend_vocabulary else "Training"
        task = self.bars.add_task(f"{work} tokenizer", total=None)
        tokenizers = self.maker.make(
            folder,
            self._training_pairs,
            [
                (corpus.source, corpus.target)
                for corpus in self.corpora["train"]
            ],
        )
        self.bars.update(task, total=1, completed=1)
        return tokenizers

    def _training_pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs that pieces are learned from: each sentence once."""
        held_out = set(self.held_out_rows.tolist())
        start = 0
        for sources, targets in self.spools["train"].blocks():
            if self.options.context:
                sources = map(without_context, sources)
            pairs = list(zip(sources, targets, strict=True))
            numbered = list(enumerate(pairs))
            for place, _, example in self.case_examples.of(start, pairs):
                numbered.append((place, example))
            for place, pair in numbered:
                if start + place not in held_out:
                    yield pair
            start += len(pairs)

    def _write_shards(
        self, tokenizers, unknown: UnknownTokens, alignments: Path | None
    ) -> tuple[dict, dict]:
        task = self.bars.add_task(
            "Tokenizing", total=sum(s.pairs for s in self.spools.values())
        )
        encoder = PairEncoder(
            self.folder,
            tokenizers,
            unknown,
            lambda n: self.bars.advance(task, n),
            self.options.tags(),
            self.map_blocks or map_in_threads,
            self.options.tag_side,
        )
        held_out = {
            split: {
                **encoder.encode_held_out(
                    split, self.spools[split], self.options.max_tokens
                ),
                "texts": self._text_hashes(split),
            }
            for split in HELD_OUT
            if split in self.spools
        }
        if encoder.too_long:
            raise UserErrors(
                self._too_long_message(*line) for line in encoder.too_long
            )
        entries = [e for e in self.entries if e["split"] == "train"]
        train, written = encoder.encode_train(
            self.spools["train"],
            [entry["pairs"] for entry in entries],
            self.held_out_rows,
            self.options.max_tokens,
            self._leave_out,
            self.case_examples,
            self._alignment_filter(tokenizers),
            self._pair_masker(),
            alignments,
        )
        if self.case_examples.share:
            train["case_examples"] = self.case_examples.counts
        counts = self.filters["train"]
        if not train["pairs"]:
            files = [corpus.source for corpus in self.corpora["train"]]
            self._warn_of_filters()
            raise UserError(_no_pairs_message("train", files, counts))
        ends = dict.fromkeys(HELD_OUT, 0)
        for entry in self.entries:
            if (split := entry["split"]) != "train":
                start = ends[split]
                ends[split] += entry["pairs"]
                entry["rows"] = [start, ends[split]]
        self._warn_of_filters()
        self._warn_of_empty_corpora(entries, written)
        stops = np.cumsum(written).tolist()
        for entry, pairs, stop in zip(entries, written, stops, strict=True):
            entry |= {"pairs": pairs, "rows": [stop - pairs, stop]}
        if train.get("masked_pairs") == 0:
            self.warnings.append(
                "no training pair got a mask symbol, since none has a "
                "placeholder, address, number or name that is equal on both "
                "sides. A model will not learn to copy the symbols: prepare "
                "without `mask_symbols`."
            )
        splits = {"train": train, **held_out}
        self.warnings += unknown.warnings(splits)
        splits = {
            split: {**summary, **unknown.entry(split)}
            for split, summary in splits.items()
        }
        return splits, encoder.leakage

    def _alignment_filter(self, tokenizers) -> AlignmentFilter | None:
        """Learns which training pairs are misaligned, if asked for."""
        min_score = self.options.min_alignment_score
        if min_score is None:
            return None
        task = self.bars.add_task("Learning alignments", total=None)
        alignment = AlignmentFilter(self.spools["train"], tokenizers, min_score)
        self.bars.update(task, total=1, completed=1)
        return alignment

    def _pair_masker(self) -> PairMasker | None:
        number = self.options.mask_symbols
        return PairMasker(number, self.options.seed) if number else None

    def _leave_out(self, row: int, reason: str, texts: tuple, pieces: tuple):
        """Leaves a pair out in the second pass."""
        if self.options.context:
            source = without_context(texts[0], self.options.tags())
            texts = source, texts[1]
        self.filters["train"][reason] += 1
        self.filters["train"]["kept"] -= 1
        number, line = self._origin("train", row)
        self.left_out["train"][number].add(
            reason, line, *texts, pieces if reason == "length" else None
        )
        corpus = self.corpora["train"][number]
        self.rejected.add("train", corpus, line, reason, *texts)

    def _origin(self, split: str, row: int) -> tuple[int, int]:
        """Returns the corpus' number and the line of a row of a spool."""
        origin = self.spools[split].origins(np.array([row]))[0]
        return int(origin["corpus"]), int(origin["line"])

    def _too_long_message(self, split: str, row: int, side: int, pieces: int):
        number, line = self._origin(split, row)
        # A split that was drawn is from the training corpora.
        corpus = self.corpora.get(split, self.corpora["train"])[number]
        return (
            f"{(corpus.source, corpus.target)[side]}, line {line}: must have "
            f"at most {MAX_PAIR_LENGTH:,} pieces, as every sentence of the "
            f"{split} set. Received: {pieces:,} pieces. Is it one sentence? "
            "Split or delete this line, on both sides."
        )

    def _warn_of_filters(self):
        left_out = [one for ones in self.left_out.values() for one in ones]
        for entry, one in zip(self.entries, left_out, strict=True):
            self.warnings += one.warnings(entry["lines"])

    def _warn_of_empty_corpora(self, entries: list[dict], written: list[int]):
        for entry, left_out, pairs in zip(
            entries, self.left_out["train"], written, strict=True
        ):
            if not pairs:
                counts = ", ".join(
                    f"{count:,} {reason}"
                    for reason, count in left_out.counts.items()
                )
                self.warnings.append(
                    f"The training corpus {entry['name']} ({entry['source']}, "
                    f"weight {entry['weight']:g}) has no pair left of "
                    f"{entry['lines']:,} ({counts or 'all held out'}), so it "
                    "takes no part. A pair of several corpora counts for the "
                    "one with the largest weight, or else the first."
                )

    def _write_shortlist(self, source: Tokenizer, target: Tokenizer) -> dict:
        """Learns the shortlists, if any, and returns their manifest entry."""
        if not self.options.shortlist_targets:
            return {}
        task = self.bars.add_task("Learning shortlists", total=None)
        store = PairStore(
            self.folder,
            "train",
            source.vocabulary_size,
            target.vocabulary_size,
        )
        shortlists = learn_shortlists(
            store,
            source.vocabulary_size,
            target.vocabulary_size,
            self.options.shortlist_targets,
            mark=mark_id(source) if self.options.context else None,
        )
        shortlists.save(self.folder / SHORTLIST_FILE)
        self.bars.update(task, total=1, completed=1)
        return {
            "shortlist": {"sha256": file_sha256(self.folder / SHORTLIST_FILE)}
        }

    def _text_hashes(self, split: str) -> dict[str, str]:
        return {
            side: file_sha256(self.folder / text_file(split, side))
            for side in ("source", "target")
        }


def _case_examples(options, maker: TokenizerMaker) -> CaseExamples:
    share = options.case_examples
    if share is None:
        is_factored = maker.normalizations[0].case == "factored"
        share = DEFAULT_SHARE if is_factored else 0.0
    return CaseExamples(share, options.seed, maker.user_defined_symbols)


def _no_pairs_message(split: str, files: list[Path], counts: dict) -> str:
    reasons = [
        f"{count} {name}"
        for name, count in counts.items()
        if count and name not in ("read", "held_out", "kept")
    ]
    return (
        f"No {split} pair is left of {counts['read']} in {files[0]} "
        f"({', '.join(reasons)}). Loosen the filters or check the files."
    )


def _versions() -> dict[str, str]:
    names = ("sentencepiece", "array-record", "numpy")
    return {
        "keras_deepnmt": _own_version(),
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def _own_version() -> str:
    from keras_deepnmt.version import __version__

    return __version__
