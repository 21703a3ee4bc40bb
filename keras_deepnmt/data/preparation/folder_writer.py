"""Writes all files of a prepared folder."""

import itertools
import logging
import platform
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.progress import Progress

from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.manifest import (
    FORMAT,
    damaged_files,
    read_manifest,
    text_file,
    write_manifest,
)
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.filter_warnings import (
    LARGE_SHARE,
    Example,
    too_many_left_out,
)
from keras_deepnmt.data.preparation.held_out_sample import HeldOutSample
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.pair_encoding import PairEncoder
from keras_deepnmt.data.preparation.pair_reading import PairReader
from keras_deepnmt.data.preparation.shortlist_learning import learn_shortlists
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.preparation.text_filters import FILTERS
from keras_deepnmt.data.preparation.tokenizer_making import TokenizerMaker
from keras_deepnmt.data.shortlists import SHORTLIST_FILE
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256

HELD_OUT = ("valid", "test")
_log = logging.getLogger(__name__)


class FolderWriter:
    """Runs the steps that write a prepared folder.

    `corpora` gives the corpora of each split; `folder` must exist and be empty;
    `bars` shows the progress.
    """

    def __init__(
        self,
        options: PrepareOptions,
        corpora: dict[str, list[CorpusFiles]],
        folder: Path,
        bars: Progress,
    ):
        self.options = options
        self.corpora = corpora
        self.folder = folder
        self.bars = bars
        self.spools: dict[str, Spool] = {}
        self.entries: list[dict] = []
        self.filters: dict[str, dict] = {}
        self.held_out_rows = np.zeros(0, "int64")
        self.spool_folder = folder / "spool"

    def write(self) -> dict:
        """Runs all steps and returns the manifest, which is written last."""
        self.spool_folder.mkdir()
        maker = TokenizerMaker(self.options)
        self.normalizations = maker.normalizations
        for split in self.corpora:
            self._read_split(split)
        source, target = self._make_tokenizers(maker)
        splits, leakage = self._write_shards((source, target))
        shortlist = self._write_shortlist(source, target)
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
            **shortlist,
            "versions": _versions(),
        }
        if damaged := damaged_files(self.folder, manifest):
            raise UserError(
                f"{self.folder}: {', '.join(damaged)} did not reach the disk "
                "as written. Check the disk and run again."
            )
        write_manifest(self.folder, manifest)
        return read_manifest(self.folder)

    def _read_split(self, split: str):
        options, corpora = self.options, self.corpora[split]
        train = split == "train"
        held_out_pairs = [
            getattr(options, f"{name}_pairs") for name in HELD_OUT
        ]
        sample = HeldOutSample(
            sum(held_out_pairs) if train else 0, options.seed
        )
        files = [f for c in corpora for f in (c.source, c.target)]
        task = self.bars.add_task(
            f"Reading {split}",
            # The size of a pipe is not known.
            total=sum(f.stat().st_size for f in files if f.is_file()) or None,
        )
        reader = PairReader(
            options.pair_filter() if train else None,
            train and options.drop_duplicates,
            self.normalizations,
            sample,
            lambda count: self.bars.advance(task, count),
        )
        with ExitStack() as stack:
            spool = stack.enter_context(Spool(self.spool_folder, split))
            raw = () if train else self._open_texts(split, stack)
            for corpus in corpora:
                entry = reader.read(corpus, spool, raw)
                self.entries.append({"split": split, **entry})
        self.spools[split] = spool
        self.filters[split] = {**reader.counts, "kept": spool.pairs}
        if not spool.pairs:
            raise UserError(_no_pairs_message(split, files, reader.counts))
        if train:
            self._write_held_out(sample, held_out_pairs)

    def _write_held_out(self, sample: HeldOutSample, num_pairs: list[int]):
        rows, texts = sample.draw()
        kept = self.filters["train"]["kept"]
        if kept <= sum(num_pairs):
            raise UserError(
                "The training text must hold more pairs than are held out of "
                f"it. Received: valid_pairs={num_pairs[0]}, "
                f"test_pairs={num_pairs[1]}, {kept} training pairs."
            )
        self.held_out_rows = rows
        self.filters["train"] |= {
            "held_out": len(rows),
            "kept": kept - len(rows),
        }
        remaining = iter(texts)
        for split, count in zip(HELD_OUT, num_pairs, strict=True):
            if not count:
                continue
            raw = list(itertools.islice(remaining, count))
            with ExitStack() as stack:
                spool = stack.enter_context(Spool(self.spool_folder, split))
                spool.write(raw)
                for file, side in zip(
                    self._open_texts(split, stack),
                    zip(*raw, strict=True),
                    strict=True,
                ):
                    file.write("\n".join(side) + "\n")
            self.spools[split] = spool
            self.filters[split] = {
                "read": count,
                **dict.fromkeys(FILTERS, 0),
                "kept": count,
            }

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

    def _make_tokenizers(
        self, maker: TokenizerMaker
    ) -> tuple[Tokenizer, Tokenizer]:
        folder = self.folder / "tokenizer"
        folder.mkdir()
        task = self.bars.add_task("Training tokenizer", total=None)
        tokenizers = maker.make(
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
        held_out = set(self.held_out_rows.tolist())
        row = 0
        for block in self.spools["train"].blocks():
            for pair in zip(*block, strict=True):
                if row not in held_out:
                    yield pair
                row += 1

    def _write_shards(self, tokenizers) -> tuple[dict, dict]:
        task = self.bars.add_task(
            "Tokenizing", total=sum(s.pairs for s in self.spools.values())
        )
        encoder = PairEncoder(
            self.folder, tokenizers, lambda n: self.bars.advance(task, n)
        )
        held_out = {
            split: {
                **encoder.encode_held_out(split, self.spools[split]),
                "texts": self._text_hashes(split),
            }
            for split in HELD_OUT
            if split in self.spools
        }
        entries = [e for e in self.entries if e["split"] == "train"]
        train, written, too_long = encoder.encode_train(
            self.spools["train"],
            [entry["pairs"] for entry in entries],
            self.held_out_rows,
            self.options.max_tokens,
        )
        counts = self.filters["train"]
        if too_long > LARGE_SHARE * counts["kept"]:
            self._warn_too_long(encoder, too_long)
        counts["length"] += too_long
        counts["kept"] -= too_long
        if not train["pairs"]:
            files = [corpus.source for corpus in self.corpora["train"]]
            raise UserError(_no_pairs_message("train", files, counts))
        for entry in self.entries:
            if entry["split"] != "train":
                entry["rows"] = [0, entry["pairs"]]
        stops = np.cumsum(written).tolist()
        for entry, pairs, stop in zip(entries, written, stops, strict=True):
            entry |= {"pairs": pairs, "rows": [stop - pairs, stop]}
        return {"train": train, **held_out}, encoder.leakage

    def _warn_too_long(self, encoder: PairEncoder, count: int):
        """Warns that much of the training text is longer than `max_tokens`."""
        lengths = {row: sides for row, *sides in encoder.too_long}
        spool = self.spools["train"]
        pairs = (
            pair
            for block in spool.blocks()
            for pair in zip(*block, strict=True)
        )
        examples = [
            Example(
                "a pair", *pair, " ({} and {} pieces)".format(*lengths[row])
            )
            for row, pair in enumerate(
                itertools.islice(pairs, max(lengths) + 1)
            )
            if row in lengths
        ]
        warning = too_many_left_out(
            *("train", "length", count, self.filters["train"]["kept"]),
            examples,
            "Loosen it by `max_tokens` (--max-tokens), now "
            f"{self.options.max_tokens}, or by a larger `vocabulary_size`.",
        )
        _log.warning("%s", warning)

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


def _no_pairs_message(split: str, files: list[Path], counts: dict) -> str:
    reasons = [f"{counts[name]} {name}" for name in FILTERS if counts[name]]
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
