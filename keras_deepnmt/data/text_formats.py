"""Recognizes files of other formats that were given as plain text."""

import codecs
import json
import re
from collections.abc import Sequence

from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError

# So much is read of a file to recognize it.
_HEAD_BYTES = 1 << 20
_ROOT = re.compile(r"<(?![?!])(?:[\w.-]+:)?([\w.-]+)")
_XML = re.compile(r"\s*<(\?xml\s|!DOCTYPE\s+(tmx|xliff)\b|(tmx|xliff)[\s>])")
_COMMENT = re.compile(r"<!--.*?(-->|$)", re.DOTALL)
_XML_KINDS = {"tmx": "a TMX file", "xliff": "an XLIFF file"}
_READ_AS_ONE = (*_XML_KINDS.values(), "a JSON Lines file")
_JSON_ARRAY = re.compile(r"\s*\[\s*\{\s*\"")
_JSON_NAME = re.compile(
    r"\.(json|jsonl|ndjson)(\.(gz|xz|zst|bz2))?$", re.IGNORECASE
)
# What the files begin with whose content is not text. Only where the rest is
# not text, too.
_SIGNATURES = {
    b"\x04\x22\x4d\x18": "an LZ4 file",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"PK\x03\x04": "a ZIP archive, as DOCX, XLSX and ODT files are",
    b"%PDF-": "a PDF file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"SQLite format 3": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "a DOC or XLS file",
    b"\x89HDF": "an HDF5 file",
}
# A file with more zeros, and a larger share of them, is no text in UTF-8.
_FEW_ZEROS = 4
_MOST_ZEROS = 0.01
_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    # The mark of UTF-32 begins with that of UTF-16.
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def refuse_other_formats(sides: Sequence[LineReader]) -> None:
    """Refuses files that are not plain text in UTF-8 but of a known format.

    These are TMX, XLIFF and other XML, JSON and JSON Lines, text with the byte
    order mark of UTF-16 or UTF-32, archives, office documents, PDF, Parquet,
    Arrow and other files with many bytes of zero, each plain or compressed.
    They are recognized by how they begin. Since the sentences of one side may
    be JSON, a file of JSON must have such a name, or both sides must be JSON.
    `sides` are the source and the target side of a corpus.
    """
    heads = {side.path: side.head(_HEAD_BYTES) for side in sides}
    for path, head in heads.items():
        kind = _binary_kind(head)
        if kind is not None:
            raise UserError(
                f"{path}: is {kind}, but a corpus must be two text files with "
                "one sentence per line. The formats that are read are plain "
                "text in UTF-8 and the same compressed (.gz, .xz, .zst, "
                ".bz2): unpack or convert it."
            )
    texts = {path: _decoded(head) for path, head in heads.items()}
    all_json = all(_json_kind(text) for text, _ in texts.values())
    for path, (text, encoding) in texts.items():
        kind = _xml_kind(text)
        if kind is None and (all_json or _JSON_NAME.search(path.name)):
            kind = _json_kind(text)
        if kind is not None:
            raise UserError(
                f"{path}: is {kind}, but `source` and `target` are plain text "
                f"files with one sentence per line. {_remedy(kind)}"
            )
        if encoding != "UTF-8":
            raise UserError(
                f"{path}: is text in {encoding}, but must be in UTF-8. Convert "
                f"it: iconv -f {encoding} -t UTF-8 {path} > NEW_FILE"
            )


def xml_format(file: LineReader) -> str | None:
    """Returns `xliff` or `tmx` if a file begins as these do.

    Example:
    >>> from pathlib import Path
    >>> size = Path("memory.txt").write_text("<tmx version='1.4'><body>")
    >>> xml_format(LineReader("memory.txt"))
    'tmx'
    """
    text, _ = _decoded(file.head(_HEAD_BYTES))
    root = _root(text) if _XML.match(text) else None
    return root if root in _XML_KINDS else None


def _remedy(kind):
    if kind in _READ_AS_ONE:
        return (
            "Give it as one file with both sides: `--file`, in a recipe "
            "`file`. See the page “Preparing data” of the documentation."
        )
    return (
        "Convert it to XLIFF, TMX, TSV or JSON Lines, which are read as one "
        "file with both sides (`--file`), or to plain text. See the page "
        "“Preparing data” of the documentation."
    )


def _binary_kind(head: bytes) -> str | None:
    if head[257:262] == b"ustar":
        return "a tar archive"
    if any(map(head.startswith, _MARKS)):
        return None
    zeros = head.count(0)
    if zeros or not _is_utf8(head):
        for signature, kind in _SIGNATURES.items():
            if head.startswith(signature):
                return kind
    if zeros > max(_FEW_ZEROS, _MOST_ZEROS * len(head)):
        return "in a format that is not known"
    return None


def _is_utf8(head: bytes) -> bool:
    try:
        # The end of the head may cut a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(head: bytes) -> tuple[str, str]:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            text = head.decode(encoding, "replace")
            return text.removeprefix("\ufeff"), encoding
    return head.decode("utf-8", "replace"), "UTF-8"


def _xml_kind(text: str) -> str | None:
    if not _XML.match(text):
        return None
    return _XML_KINDS.get(_root(text), "an XML file")


def _root(text: str) -> str | None:
    root = _ROOT.search(_COMMENT.sub("", text))
    return root and root[1].lower()


def _json_kind(text: str) -> str | None:
    if _JSON_ARRAY.match(text):
        return "a JSON file"
    lines = [line for line in text.split("\n") if line.strip()][:3]
    if lines and all(map(_is_json_object, lines)):
        return "a JSON Lines file"
    return None


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
