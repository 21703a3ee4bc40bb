"""`deepnmt translate-files`: translates many files by several workers."""

import collections
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.bulk.ray_session import ray_session
from keras_deepnmt.bulk.worker_pool import WorkerPool
from keras_deepnmt.commands.options.compilation import add_compile
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    add_tag,
    add_target_language,
    check_num_hypotheses,
    given_decoding_options,
    option_name,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.options.workers import add_workers
from keras_deepnmt.commands.shards.ctranslate2_model import is_engine_folder
from keras_deepnmt.commands.shards.files import (
    REPORTS,
    TSV,
    LineBlock,
    Shard,
    check_is_text,
    find_shards,
    read_blocks,
)
from keras_deepnmt.commands.shards.output_folder import (
    MOST_NUMBERS,
    OutputFolder,
)
from keras_deepnmt.commands.shards.worker import (
    BlockTranslator,
    column_names,
    open_model,
)
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.trained import find_run_folder, is_in_package
from keras_deepnmt.version import __version__

EXAMPLE = """
deepnmt translate-files runs/demo --input 'mono/*.gz' --output translated
deepnmt translate-files runs/demo --input 'mono/*.gz' --output translated \\
    --ray auto --workers 64
deepnmt translate-files runs/en-de --input 'mono/*.en.gz' --output back \\
    --sampling true --num-beams 1 --format tsv
"""
CONTINUE = "Finished files stay; the same command goes on."
# Seconds after which what was translated of a file is kept again.
_KEEP_EVERY = 5.0
_logger = logging.getLogger(__name__)


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt translate-files`."""
    add_run_folder(parser, "or folder of an export for CTranslate2")
    parser.add_argument(
        "--input",
        "-i",
        nargs="+",
        required=True,
        metavar="PATTERN",
        help="Text files to translate, one sentence per line, plain or "
        "compressed: paths, or patterns in quotation marks such as "
        "'mono/*.gz'.",
    )
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="DIR",
        help="Folder for the translations: a file for each file, of the same "
        "name, compressed if that ends with .gz, .bz2, .xz or .zst, with one "
        "line for each line.",
    )
    add_workers(parser)
    parser.add_argument(
        "--format",
        type=Literal["text", "tsv"],
        default="text",
        help="text: the translation of each line. tsv: a table with the "
        "columns text and translation, as `deepnmt prepare` reads; its name "
        "ends with .tsv, or .tsv.gz.",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="Add a column with the score of each translation; needs --format "
        "tsv.",
    )
    parser.add_argument(
        "--num-hypotheses",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of different translations of each line, at most; from 2 "
        "on it needs --format tsv, where each has its own column.",
    )
    add_decoding_options(parser)
    parser.add_argument(
        "--block-lines",
        type=PositiveInt,
        default=1024,
        metavar="N",
        help="Number of lines that a worker gets at a time; it sorts them by "
        "length.",
    )
    add_checkpoint(parser)
    add_compile(parser, lazily=False)
    add_tag(parser)
    add_target_language(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Translates all files that are not finished."""
    _check(options)
    output = Path(options.output)
    shards = find_shards(options.input, output, options.format)
    folder = _folder(options.run)
    if not is_in_package(folder):
        # Workers run in other folders.
        options.run = str(folder.resolve())
    options["import"] = [_absolute(entry) for entry in options["import"]]
    given = given_decoding_options(options)
    import_backend()
    model = open_model(options)
    made_of = _made_of(options, model, given)
    results = OutputFolder(
        output, made_of, {"--cores-per-worker": options.cores_per_worker}
    )
    with results.opened():
        open_shards = [s for s in shards if not results.is_finished(s)]
        for shard in open_shards:
            check_is_text(shard)
        if len(open_shards) < len(shards):
            _logger.info(
                "%s of %s files are finished.",
                f"{len(shards) - len(open_shards):,}",
                f"{len(shards):,}",
            )
        unreadable = []
        if open_shards:
            job = _Job(options, results, open_shards, model.sha256)
            unreadable = job.run()
        _warn_of_faults(results, shards, output)
    if unreadable:
        raise UserErrors(unreadable)
    print(output)


def _check(options):
    check_num_hypotheses(options)
    if options.format != TSV:
        for name, needs in (
            ("--score", options.score),
            ("--num-hypotheses", options.num_hypotheses > 1),
        ):
            if needs:
                raise UserError(
                    f"`{name}` needs `--format tsv`: a text file has one "
                    "translation for each line, and nothing else."
                )


def _folder(model):
    if is_engine_folder(model):
        return Path(model)
    return find_run_folder(model)


def _absolute(entry):
    return str(Path(entry).resolve()) if Path(entry).is_file() else entry


def _made_of(options, model, given) -> dict[str, Any]:
    """What the translations depend on, by the names of options."""
    found = model.made_of(given)
    for name in ("format", "num_hypotheses", "score", "block_lines"):
        found[name] = options[name]
    return {
        "deepnmt": __version__,
        **model.versions,
        "RUN": {"sha256": model.sha256},
        **{option_name(name): value for name, value in found.items()},
    }


class _Job:
    """The translation of the files that are not finished."""

    def __init__(
        self,
        options: Namespace,
        folder: OutputFolder,
        shards: list[Shard],
        model_sha256: str,
    ):
        self._options = options
        self._folder = folder
        self._shards = shards
        self._model_sha256 = model_sha256
        self._parts = {shard: folder.part_files(shard) for shard in shards}
        # What workers were given, and have not returned.
        self._blocks: collections.deque[LineBlock] = collections.deque()
        self._bytes = sum(shard.source.stat().st_size for shard in shards)
        self._lines_read = self._bytes_read = self._lines_before = 0
        self._unreadable: list[str] = []
        self._is_unreadable = False
        self._num_finished = 0

    def run(self) -> list[str]:
        """Translates the files; says which of them cannot be read."""
        options = self._options
        cores = options.cores_per_worker
        with ray_session(
            options.ray, options.workers and options.workers * cores
        ) as ray:
            environment = {"TF_CPP_MIN_LOG_LEVEL": "3"}
            if "KERAS_BACKEND" in os.environ:
                environment["KERAS_BACKEND"] = os.environ["KERAS_BACKEND"]
            arguments = (vars(options), environment, self._model_sha256)
            with WorkerPool(
                ray,
                BlockTranslator,
                arguments,
                workers=options.workers,
                cores=cores,
                gpus=options.gpus_per_worker,
            ) as pool:
                _logger.info(
                    "Starting %s with %s each, for %s.",
                    _number(pool.num_workers, "worker"),
                    _number(cores, "core"),
                    _number(len(self._shards), "file"),
                )
                if pool.num_unused_gpus:
                    _logger.warning(
                        "%s not used. Give `--gpus-per-worker 1`, or a share "
                        "such as 0.5.",
                        "1 GPU is"
                        if pool.num_unused_gpus == 1
                        else f"{pool.num_unused_gpus:,} GPUs are",
                    )
                try:
                    self._translate(pool)
                except KeyboardInterrupt as stop:
                    # SIGTERM keeps its exit code.
                    raise type(stop)(
                        f"interrupted. {self._num_finished:,} of "
                        f"{len(self._shards):,} files were finished, and what "
                        "was translated of the next one is kept; the same "
                        "command goes on."
                    ) from None
        return self._unreadable

    def _translate(self, pool):
        results = pool.results(self._calls())
        # Lines that earlier commands translated are read when it begins.
        with progress_bar(
            "sentences", self._estimated_lines, self._options.quiet
        ) as advance:
            for shard in self._shards:
                self._is_unreadable = False
                try:
                    self._write(shard, results, advance)
                    self._num_finished += 1
                except UserError as error:
                    if not self._is_unreadable:
                        raise
                    self._unreadable.append(str(error))

    def _estimated_lines(self) -> int | None:
        """The lines to translate, if all files are like what was read."""
        if not self._bytes_read:
            return None
        of_all = self._bytes / self._bytes_read
        return round(self._lines_read * of_all) - self._lines_before

    def _calls(self) -> Iterator[tuple]:
        """Yields the blocks of all files; `_blocks` has them, too."""
        for shard in self._shards:
            state = self._parts[shard].kept_before() or {}
            done = state.get("lines", 0)
            before, lines = self._bytes_read, self._lines_read
            self._lines_before += done
            for block in read_blocks(
                shard.source,
                self._options.block_lines,
                done,
                state.get("sha256"),
            ):
                self._bytes_read = before + block.position
                self._lines_read = lines + block.end
                self._blocks.append(block)
                yield (block.lines,)

    def _write(self, shard, results, advance):
        warnings = LineWarnings(most_numbers=MOST_NUMBERS)
        with self._parts[shard] as parts:
            state = self._folder.begin(parts) or self._first_state()
            if parts.is_complete:
                self._pass_over(results)
                return
            warnings.state = state["faults"]
            if not state["written"]:
                state = self._write_header(parts.streams[0], state)
            kept_at = time.monotonic()
            block = None
            while block is None or not block.is_last:
                # As calls were: one for each of the blocks.
                found = next(results)
                block = self._blocks.popleft()
                first = state["lines"] + 1
                parts.streams[0].writelines(f"{x}\n" for x in found.lines)
                for place, fault in found.faults:
                    warnings.add(first + place, fault)
                state = {
                    "lines": block.end,
                    "written": state["written"] + len(found.lines),
                    "sha256": block.sha256,
                    "faults": warnings.state,
                }
                advance(len(found.lines))
                if time.monotonic() - kept_at > _KEEP_EVERY:
                    parts.keep(state["lines"], state)
                    kept_at = time.monotonic()
            parts.keep(state["lines"], state)
            if block.fault is not None:
                self._is_unreadable = True
                raise UserError(block.fault)
            self._folder.write_report(shard, state, warnings)

    def _pass_over(self, results):
        """Takes what follows of a file that was complete before."""
        is_last = False
        while not is_last:
            next(results)
            is_last = self._blocks.popleft().is_last

    @staticmethod
    def _first_state():
        return {"lines": 0, "written": 0, "sha256": None, "faults": {}}

    def _write_header(self, stream, state):
        options = self._options
        if options.format != TSV:
            return state
        names = column_names(options.num_hypotheses, options.score)
        stream.write("\t".join(names) + "\n")
        return {**state, "written": 1}


def _number(count, name):
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _warn_of_faults(folder, shards, output):
    """Says how many lines of all files have each fault."""
    counts: collections.Counter[str] = collections.Counter()
    files: collections.Counter[str] = collections.Counter()
    for shard in shards:
        if not shard.output.exists():
            continue
        for fault, count in folder.faults(shard).items():
            counts[fault] += count
            files[fault] += 1
    for fault, count in counts.items():
        _logger.warning(
            "%s of %s: %s %s has their numbers.",
            _number(count, "line"),
            _number(files[fault], "file"),
            fault,
            output / REPORTS,
        )
