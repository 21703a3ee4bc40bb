"""Reads two aligned text files, also compressed, as a stream of line pairs."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import field_validator

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.compression import (
    HEAD_BYTES,
    compression_of,
    is_damage,
    opener_of,
    unpacked,
)
from keras_deepnmt.data.pipe_copies import PipeCopy, copy_of_pipe
from keras_deepnmt.data.tags import check_tag
from keras_deepnmt.errors import UserError
from keras_deepnmt.limits import limits
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.validation import Flag, Positive, checked_dataclass

_CHUNK_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 24
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@checked_dataclass
class CorpusOptions:
    """Names one corpus: two text files, one file, or a corpus that is known.

    Args:
        source: Path of the source side, UTF-8 text, plain or compressed.
        target: Path of the target side, with the same number of lines.
        name: Name of the corpus. Without files it must be the name of a known
            corpus, such as `multi30k_en_de`.
        weight: How often each of its pairs is drawn per epoch, on average:
            1.0 is once, 2.0 twice, 0.5 every second epoch.
        tag: Text without white space that stands before each source sentence,
            such as `<2de>`, and is one piece of the source tokenizer. Defaults
            to none.
        reversed: Whether the corpus is used in the other direction: `target`,
            or the second language of a known corpus, is then translated to
            `source`. Name the corpus twice, with a tag each, to train a model
            for both directions.
        source_language: Code of the language of the source side, if the corpus
            has another one than `data.source_language`. With `reversed`, of
            the side that is translated to.
        target_language: The same for the target side and
            `data.target_language`.
        file: Path of a file with both sides: XLIFF, TMX, TSV or JSON Lines,
            plain or compressed. The languages of the data choose the texts of
            a TMX file, and are those that an XLIFF file must have.
        source_column: Name of the column with the source side, in a `file` of
            TSV or JSON Lines.
        target_column: Name of the column with the target side.
        translated_by: Run folder, preset folder or name of a trained model, or
            a list of those for an ensemble, whose translations of the source
            take the place of the target side, with its own search options
            (distillation of sentences, Kim and Rush, 2016). `deepnmt train`
            translates, once; a text has no `target` then. Defaults to none.
        alignments: Path of a file with the word alignment of each pair, plain
            or compressed, for `training.objective.guided_alignment`: a line
            for each line of the text, such as `0-0 1-2`, as fast_align, eflomal
            and awesome-align write it. Words are those between white space,
            counted from 0, that of the source first. Only for training text
            of two files. Defaults to none.

    Raises:
        UserError: if only one side is given, or both sides and a file, if
            neither files nor a name are given, if columns are given without a
            `file`, or alignments for one, if `weight` is not positive, or
            `tag` is empty or has white space.

    Example:
    >>> CorpusOptions("train.en", "train.de", weight=2.0).weight
    2.0
    """

    source: str | None = None
    target: str | None = None
    name: str | None = None
    weight: Positive = 1.0
    tag: str | None = None
    reversed: Flag = False
    source_language: str | None = None
    target_language: str | None = None
    file: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    translated_by: str | list[str] | None = None
    alignments: str | None = None

    @field_validator("tag")
    def _check_tag(cls, tag):
        if tag is not None:
            check_tag(tag)
        return tag

    def __post_init__(self):
        if self.translated_by and self.reversed:
            raise UserError(
                "`translated_by` translates the source of a corpus that is not "
                "reversed. Received: reversed=True, translated_by="
                f"{self.translated_by}. Exchange the names of both sides."
            )
        has_target = self.target is not None or bool(
            self.source and self.translated_by
        )
        if (
            (self.source is None) == has_target
            or not (self.source or self.file or self.name)
            or (self.source and self.file)
        ):
            raise UserError(
                "A corpus must have `source` and `target`, or a `file` with "
                "both sides, or the `name` of a known corpus. Received: "
                f"source={self.source}, target={self.target}, "
                f"file={self.file}, name={self.name}"
            )
        for name in ("source_column", "target_column"):
            if getattr(self, name) is not None and not self.file:
                raise UserError(
                    f"`{name}` needs a `file` that is TSV or JSON Lines. "
                    f"Received: {name}={getattr(self, name)}, file={self.file}"
                )
        if self.alignments and (self.file or self.translated_by):
            other = "file" if self.file else "translated_by"
            raise UserError(
                "`alignments` are of a corpus of two text files, `source` and "
                f"`target`. Received: alignments={self.alignments}, "
                f"{other}={getattr(self, other)}. Leave one of them out."
            )

    def sides(
        self, languages: tuple[str | None, str | None]
    ) -> tuple[str | None, str | None]:
        """Returns the languages of both sides, as they are in the files.

        `languages` are those of the data, which a corpus without languages of
        its own has.

        Example:
        >>> CorpusOptions(name="demo_de_en").sides(("de", "en"))
        ('de', 'en')
        """
        return (
            self.source_language or languages[0],
            self.target_language or languages[1],
        )

    def direction(
        self, languages: tuple[str | None, str | None]
    ) -> tuple[str | None, str | None]:
        """Returns the language that is translated, and that it is put into.

        Example:
        >>> corpus = CorpusOptions(name="demo_de_en", reversed=True)
        >>> corpus.direction(("de", "en"))
        ('en', 'de')
        """
        first, second = self.sides(languages)
        return (second, first) if self.reversed else (first, second)


@dataclass(frozen=True)
class CorpusFiles:
    """A corpus with the paths of its two files.

    `source` is the file that is translated, also of a reversed corpus. `weight`
    is how often each of its pairs is drawn per epoch, on average, `tag` the
    text before each source sentence, and `direction` has the languages that
    are translated from and to. `alignments` is the file with the alignments of
    its words; of a corpus that `is_reversed`, the first word of a link is one
    of `target`. `copies` are the copies of files that are pipes,
    which are kept as long as this object. Both paths are the same of one file
    with both sides; `asked` then says which texts they are. `is_reversed` says
    whether the first side of the files is the target.
    """

    name: str
    source: Path
    target: Path
    weight: float = 1.0
    tag: str | None = None
    direction: tuple[str | None, str | None] = (None, None)
    copies: tuple[PipeCopy | None, ...] = ()
    asked: Asked | None = None
    is_reversed: bool = False
    alignments: Path | None = None


class LineReader:
    """Iterates over the lines of a plain or compressed file, as bytes.

    Lines end at a line feed only, never at other Unicode separators. A carriage
    return before the line feed and a byte order mark are dropped. Files of
    gzip, bzip2, xz and Zstandard are recognized by their first bytes.
    During iteration, `sha256` and `lines` cover what has been read so far. A
    pipe, such as `<(zcat a.gz)` in a shell, is first copied to a temporary
    file, see `PipeCopy`. A missing, empty or unreadable file raises a
    `UserError`, and so does one that unpacks to more than `Limits` allow.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.lines = 0
        self.position = (
            0  # in bytes of the (compressed) file, for progress bars
        )
        self.unpacked = 0  # bytes of the text up to this position
        self._hash = hashlib.sha256()
        try:
            self.copy = copy_of_pipe(self.path)
            self._file = self.copy.path if self.copy else self.path
            with open(self._file, "rb") as file:
                head = file.read(HEAD_BYTES)
            self.bytes = self._file.stat().st_size
        except OSError as error:
            raise UserError(_open_error(self.path, error)) from error
        if not head:
            raise UserError(f"{self.path}: the file is empty.")
        compression = compression_of(head)
        if compression is not None:
            # Says now that a package is missing.
            opener_of(compression, self.path)

    @property
    def sha256(self) -> str:
        """SHA-256 of the uncompressed content read so far."""
        return self._hash.hexdigest()

    def head(self, size: int) -> bytes:
        """Returns up to `size` bytes from the start of the text.

        It is empty if they cannot be read, which the iteration reports.
        """
        try:
            with unpacked(self._file, self.path) as (_, file, _):
                return file.read(size)
        except Exception as error:
            if not is_damage(error):
                raise
            return b""

    def __iter__(self) -> Iterator[bytes]:
        for line in self.raw_lines():
            if self.lines == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            yield line.removesuffix(b"\n").removesuffix(b"\r")

    def raw_lines(self) -> Iterator[bytes]:
        """Iterates over the lines as they are, with their ends."""
        rest = b""
        for chunk in self.blocks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.lines += 1
                yield line + b"\n"
            if len(rest) > _MAX_LINE_BYTES:
                raise UserError(
                    f"{self.path}, line {self.lines + 1}: longer than "
                    f"{_MAX_LINE_BYTES} bytes. Is it a text file?"
                )
        if rest:
            self.lines += 1
            yield rest

    def blocks(self) -> Iterator[bytes]:
        """Iterates over the unpacked content as it is, in pieces."""
        is_empty, compression = True, None
        try:
            with unpacked(self._file, self.path) as (raw, file, compression):
                while chunk := file.read(_CHUNK_BYTES):
                    if compression is not None:
                        size = file.tell()
                        limits().check_unpacked(size, raw.tell(), self.path)
                    self._hash.update(chunk)
                    self.unpacked += len(chunk)
                    self.position = raw.tell()
                    is_empty = False
                    yield chunk
        except Exception as error:
            if compression is None or not is_damage(error):
                raise
            raise UserError(
                f"{self.path}, line {self.lines + 1}: the {compression} data "
                f"is damaged ({error})."
            ) from error
        if is_empty:  # a compressed file of an empty text
            raise UserError(f"{self.path}: the file is empty.")


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decodes a line as UTF-8.

    `path` and `number` (from 1) name the line in the error message.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{undecodable_line(error, path, number)} "
            "Convert the file to UTF-8."
        ) from error


def undecodable_line(error: UnicodeDecodeError, path: Path, number: int) -> str:
    """Says which byte of a line is not UTF-8, in a sentence."""
    return (
        f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line "
        f"is 0x{error.object[error.start]:02x})."
    )


def aligned_lines(
    source: LineReader, target: LineReader
) -> Iterator[tuple[bytes, bytes]]:
    """Iterates over pairs of lines of two files.

    Raises a `UserError` if one file has more lines than the other.
    """
    for pair in itertools.zip_longest(source, target):
        if pair[0] is None or pair[1] is None:
            longer = source if pair[1] is None else target
            _count_all_lines(longer, source, target)
            raise UserError(
                "The two sides must have the same number of lines. Received: "
                f"{source.path} with {source.lines} and {target.path} with "
                f"{target.lines} lines."
            )
        yield pair


def _count_all_lines(longer, source, target):
    # zip_longest has consumed the iterator, so a new reader counts the lines.
    counted = LineReader(longer.path)
    for _ in counted:
        pass
    longer.lines = counted.lines


def _open_error(path: Path, error: OSError) -> str:
    if path.is_dir():
        return f"{path}: is a folder; a text file is needed."
    if not isinstance(error, FileNotFoundError):
        return f"{path}: cannot be read ({error.strerror})."
    if not path.parent.is_dir():
        return f"{path}: no such file (there is no folder {path.parent})."
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    return f"{path}: no such file.{did_you_mean(path.name, names)}"
