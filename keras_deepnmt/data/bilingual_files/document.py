"""A document that is translated: its texts, and the document with them."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.entries import (
    BilingualFile,
)
from keras_deepnmt.data.bilingual_files.tables import JsonLinesFile, TsvFile
from keras_deepnmt.data.bilingual_files.tmx import TmxFile
from keras_deepnmt.data.bilingual_files.xliff import XliffFile
from keras_deepnmt.data.bilingual_files.xml_reader import (
    encoding_of,
    utf8_blocks,
)
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.data.text_formats import xml_format
from keras_deepnmt.errors import UserError

TEXT = "text"
READERS = {
    "xliff": XliffFile,
    "tmx": TmxFile,
    "tsv": TsvFile,
    "jsonl": JsonLinesFile,
}
# Whose markup is kept in any case, since it is no text.
WITH_MARKUP = ("xliff", "tmx")
TABLES = ("tsv", "jsonl")
# What is asked of some formats alone.
_ONLY = {
    "source_language": WITH_MARKUP,
    "target_language": WITH_MARKUP,
    "replace_targets": WITH_MARKUP,
    "source_column": TABLES,
    "target_column": TABLES,
}
# How the names of files of each format end.
ENDINGS = {
    "tsv": ("tsv",),
    "jsonl": ("jsonl", "ndjson"),
    "tmx": ("tmx",),
    "xliff": ("xlf", "xliff", "sdlxliff", "mxliff", "mqxliff"),
}
_FORMATS = "|".join(f"(?P<{name}>{'|'.join(e)})" for name, e in ENDINGS.items())
_NAME = re.compile(rf"\.(?:{_FORMATS})(?:\.(?:gz|xz|zst|bz2))?$", re.IGNORECASE)


class DocumentText(NamedTuple):
    """A text of a document, in one line, and the number of its line there."""

    line: int
    text: str


def document_format(file: LineReader) -> str:
    """Names the format of a file: by how it begins, or by its name.

    It is a key of `READERS`, or `"text"`.
    """
    return xml_format(file) or format_of_name(file.path)


def format_of_name(path: str | Path) -> str:
    """Names the format that a file should have by its name.

    Example:
    >>> format_of_name("memory.tmx.gz"), format_of_name("new.de")
    ('tmx', 'text')
    """
    found = _NAME.search(Path(path).name)
    return TEXT if found is None else found.lastgroup


def open_bilingual(
    file: LineReader, asked: Asked, format: str | None = None
) -> BilingualFile:
    """Returns the reader of a file with texts and translations.

    `format` is a key of `READERS`, by default `document_format` of the file.
    Plain text is refused.
    """
    format = format or document_format(file)
    if format not in READERS:
        raise UserError(
            f"{file.path}: must be XLIFF, TMX, or a table with the name .tsv "
            "or .jsonl. Received: plain text."
        )
    return READERS[format](file, asked)


class Document:
    """A document to translate.

    The file, plain or compressed, is read as a stream, as often as it is asked
    for. `format` is a key of `READERS`, and defaults to what the file is. Plain
    text is refused, and so is what is asked of it but is not for its format.
    """

    def __init__(
        self,
        path: str | Path,
        asked: Asked | None = None,
        format: str | None = None,
    ):
        self._file = LineReader(path)
        self.path = self._file.path
        self.format = format or document_format(self._file)
        asked = asked or Asked()
        self._reader = open_bilingual(self._file, asked, self.format)
        self._refuse_unfit(asked)
        self._is_xml = self.format in WITH_MARKUP

    def _refuse_unfit(self, asked):
        for name, formats in _ONLY.items():
            if getattr(asked, name) and self.format not in formats:
                option = f"--{name.replace('_', '-')}"
                raise UserError(
                    f"{option} cannot be used with {self.path}, which is "
                    f"{self.format}: it is for {' and '.join(formats)}. Leave "
                    "it out."
                )

    @property
    def left(self) -> Counter:
        """Why parts were left as they are, of what was read last."""
        return self._reader.left

    def texts(self) -> Iterator[DocumentText]:
        """Iterates over the texts to translate."""
        for entry in self._reader.entries():
            for text in entry.texts:
                yield DocumentText(entry.line, text)

    def write(
        self, translations: Iterator[str] | None, output: BinaryIO
    ) -> None:
        """Writes the document with translations.

        All that they do not change is written as it is. There must be a
        translation for each of `texts`; `None` writes the document as it is.
        """
        encoding = encoding_of(self._file) if self._is_xml else "utf-8"
        copy = _Copy(self._content(encoding), output, encoding)
        entries = () if translations is None else self._reader.entries()
        translations = iter(() if translations is None else translations)
        for entry in entries:
            taken = [next(translations, None) for _ in entry.texts]
            if None in taken:
                raise self._other_number("fewer")
            for edit in entry.finish(taken):
                copy.copy_until(edit.begin)
                copy.write(edit.content)
                copy.skip_until(edit.end)
        copy.copy_until(None)
        if next(translations, None) is not None:
            raise self._other_number("more")

    def _content(self, encoding):
        # Another reader, whose line number is not that of the entries.
        file = LineReader(self.path)
        if self._is_xml:
            return utf8_blocks(file, encoding=encoding)
        return file.blocks()

    def _other_number(self, amount):
        return UserError(
            f"{self.path}: there are {amount} translations than texts. Was the "
            "document changed meanwhile? Translate it again, with --restart "
            "if its part is kept."
        )


class _Copy:
    """Copies a content up to some places, and writes more between them."""

    def __init__(self, blocks, output, encoding):
        self._blocks = blocks
        self._output = output
        self._encoding = encoding
        self._block = b""
        self._place = 0  # of the first byte of the block

    def copy_until(self, place: int | None) -> None:
        for piece in self._pieces(place):
            # A place is never within a character.
            self._write_bytes(piece)

    def skip_until(self, place: int) -> None:
        for _ in self._pieces(place):
            pass

    def write(self, text: str) -> None:
        self._output.write(text.encode(self._encoding, "xmlcharrefreplace"))

    def _pieces(self, place):
        while place is None or self._place < place:
            if not self._block:
                self._block = next(self._blocks, b"")
                if not self._block:
                    break
            size = len(self._block)
            if place is not None:
                size = min(size, place - self._place)
            piece, self._block = self._block[:size], self._block[size:]
            self._place += size
            yield piece

    def _write_bytes(self, piece):
        if self._encoding != "utf-8":
            piece = piece.decode("utf-8").encode(self._encoding)
        self._output.write(piece)
