"""Which files are translated, what their results are called, their blocks."""

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_deepnmt.data.bilingual_files.document import TEXT, document_format
from keras_deepnmt.data.compression import is_empty
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.data.text_formats import refuse_other_formats
from keras_deepnmt.errors import UserError

# In the folder of results, beside these.
RECORD_FILE = "translate-files.json"
REPORTS = "reports"
# After the name of a result, while it is not finished.
PART_ENDINGS = (".part", ".part.json")
TSV = "tsv"
_COMPRESSED = (".gz", ".xz", ".zst", ".bz2")


@dataclass(frozen=True)
class Shard:
    """A file to translate, and the file of its translations."""

    source: Path
    output: Path


@dataclass(frozen=True)
class LineBlock:
    """Lines of a file that are translated together.

    Attributes:
        end: number of lines of the file up to the end of the block.
        lines: the lines, without their ends.
        sha256: hash of the lines of the file up to the end of the block.
        position: so many bytes of the file were read then.
        is_last: whether there are no lines behind it.
        fault: why the file cannot be read further; there are no lines then.
    """

    end: int
    lines: list[bytes]
    sha256: str
    position: int
    is_last: bool = False
    fault: str | None = None


def find_shards(
    patterns: Sequence[str], output: Path, format: str
) -> list[Shard]:
    """Lists the files that patterns name, in the order of their names.

    In a pattern `*`, `?` and `[...]` are wildcards, and `**` stands for any
    folders; the path of a file is no pattern. `output` is the folder for the
    results. With the format `text` these have the name of their file; with
    `tsv`, `.tsv` is added before the ending of a compressed one.
    """
    sources: dict[Path, None] = {}
    for pattern in patterns:
        # The name of a file may have wildcards.
        is_file = os.path.isfile(pattern)
        found = [pattern] if is_file else glob.glob(pattern, recursive=True)
        files = [Path(name) for name in sorted(found) if Path(name).is_file()]
        if not files:
            raise UserError(
                f"`--input`: no file is found by {pattern}. Put quotation "
                "marks around a pattern, so that the shell leaves it alone."
            )
        sources.update(dict.fromkeys(files))
    by_name: dict[str, Path] = {}
    for source in sources:
        if source.resolve().parent == output.resolve():
            raise UserError(
                f"{source}: is in the folder of `--output`. Choose another "
                "folder for the translations."
            )
        name = _output_name(source.name, format)
        other = by_name.setdefault(name, source)
        if other != source:
            raise UserError(
                f"{other} and {source}: their translations would both be "
                f"{output / name}. Rename one of them, or translate them into "
                "two folders."
            )
    taken = {RECORD_FILE: "its own record", REPORTS: "its reports"}
    for name in by_name:
        for ending in PART_ENDINGS:
            taken[f"{name}{ending}"] = f"what is not finished of {name}"
    for name, source in by_name.items():
        if name in taken:
            raise UserError(
                f"{source}: its translation would be {output / name}, where "
                f"`deepnmt translate-files` has {taken[name]}. Rename the "
                "input."
            )
    return [Shard(by_name[name], output / name) for name in sorted(by_name)]


def _output_name(name, format):
    if format != TSV:
        return name
    ending = Path(name).suffix
    if ending.lower() not in _COMPRESSED:
        ending = ""
    return f"{name.removesuffix(ending)}.tsv{ending}"


def check_is_text(shard: Shard) -> None:
    """Refuses a file that is not plain text."""
    if is_empty(shard.source):
        return
    reader = LineReader(shard.source)
    if document_format(reader) != TEXT:
        raise UserError(
            f"{shard.source}: is a document by its name or content. `deepnmt "
            "translate` translates documents; here files are plain text with "
            "one sentence per line."
        )
    refuse_other_formats([reader])


def read_blocks(
    source: Path, size: int, done: int = 0, sha256: str | None = None
) -> Iterator[LineBlock]:
    """Yields the lines of a file in blocks; at least one, which may be empty.

    A file that cannot be read further ends with a block that says why. A block
    has at most `size` lines. The first `done` lines are left out, and must have
    the hash `sha256`.
    """
    digest = hashlib.sha256()
    number, lines, position, size_of_lines = 0, [], 0, 0

    def block(**more):
        return LineBlock(number, lines, digest.hexdigest(), position, **more)

    try:
        reader = None if is_empty(source) else LineReader(source)
        for line in reader or ():
            if len(lines) == size:
                yield block()
                lines = []
            digest.update(line + b"\n")
            number += 1
            size_of_lines += len(line) + 1
            # The reader is ahead of the lines.
            position = reader.position * size_of_lines // reader.unpacked
            if number > done:
                lines.append(line)
            elif number == done and digest.hexdigest() != sha256:
                raise _OtherLines
    except _OtherLines:
        raise UserError(
            f"{source}: the first {done:,} lines are not those that were "
            "translated before. Put the old file back, or choose another "
            "folder for the translations."
        ) from None
    except UserError as error:
        if lines:
            yield block()
        lines = []
        yield block(is_last=True, fault=str(error))
        return
    if number < done:
        raise UserError(
            f"{source}: has fewer lines than were translated before, {done:,}. "
            "Put the old file back, or choose another folder for the "
            "translations."
        )
    yield block(is_last=True)


class _OtherLines(Exception):
    pass
