"""Builds a text from members of archives.

Nothing is unpacked: members are read from the archive by the names that the
registry gives, so a path in an archive is never one on the disk.
"""

import contextlib
import html
import io
import itertools
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from keras_deepnmt.data.compression import unpacked
from keras_deepnmt.data.known_corpora.sources import BuiltFile, Member
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file
from keras_deepnmt.limits import limits

_CHUNK_BYTES = 1 << 20
_ZIP_METHODS = {
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
}
_ENCRYPTED = 1  # the bit of a member's flags
# What reading an archive raises if it is cut or changed.
_DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,  # of bz2 and gzip, without a number
    NotImplementedError,  # for a version of the format
    ElementTree.ParseError,
    UnicodeDecodeError,
)
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
# Not `str.split()`, which also takes the spaces of other scripts.
_SPACES = re.compile(r"[ \t\r\n]+")
_DESCRIBED = re.compile(r"^\s*<(title|description)>(.*)</\1>\s*$")
_DESCRIPTION = re.compile(
    r"^\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc|transcript)\b"
)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def verify_archive(archive: Path) -> None:
    """Reads an archive to its end, so that its checksums are compared.

    A hash of the whole file makes this needless. An archive is refused if it is
    damaged, is encrypted or uses a method that is not known, or unpacks to more
    than `Limits` allow.
    """
    with _damage_refused(archive, "the file"):
        if zipfile.is_zipfile(archive):
            _verify_zip(archive)
            return
        with unpacked(archive) as (raw, content, _):
            while content.read(_CHUNK_BYTES):
                limits().check_unpacked(content.tell(), raw.tell(), archive)


def _verify_zip(archive):
    with zipfile.ZipFile(archive) as files:
        members = files.infolist()
        for info in members:
            if info.flag_bits & _ENCRYPTED:
                raise UserError(
                    f"{archive}: {info.filename} is encrypted. Give an archive "
                    "without a password."
                )
            if info.compress_type not in _ZIP_METHODS:
                raise UserError(
                    f"{archive}: {info.filename} is compressed by a method "
                    f"that is not read (number {info.compress_type}). Pack it "
                    "again as an ordinary zip file."
                )
        declared = sum(info.file_size for info in members)
        packed = archive.stat().st_size
        limits().check_unpacked(declared, packed, archive)
        # No member yields more than it declares.
        damaged = files.testzip()
        if damaged is not None:
            raise zipfile.BadZipFile(f"wrong checksum of {damaged}")


def build_text(file: BuiltFile, archives: dict[str, Path], path: Path) -> None:
    """Writes the text of a file to `path`, one sentence a line.

    `archives` maps the name of each archive to its path. Not every damage of an
    archive is found: call `verify_archive` before, or compare a hash.
    """
    with atomic_file(path) as temporary, open(temporary, "wb") as text:
        for member in file.members:
            where = archives[member.archive.name]
            with (
                _damage_refused(where, member.path or "the file"),
                _open_member(where, member.path) as content,
            ):
                for line in read_sentences(content, member):
                    text.write(line + b"\n")


def read_sentences(content: BinaryIO, member: Member) -> Iterator[bytes]:
    """Iterates over the sentences of a member, as UTF-8 without line ends."""
    if member.form == "tmx":
        return _tmx(content, *member.languages)
    if member.form == "sgm":
        return _segments(content.read().decode("utf-8"))
    lines = (line.rstrip(b"\r\n") for line in content)
    if member.lines is not None:
        return itertools.islice(lines, *member.lines)
    return _talks(lines) if member.form == "talks" else lines


def _segments(text: str) -> Iterator[bytes]:
    for segment in _SEGMENT.findall(text):
        yield _one_line(html.unescape(segment))


def _talks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Titles and descriptions are translated too; other tags hold no text."""
    for line in lines:
        text = line.decode("utf-8")
        if described := _DESCRIBED.match(text):
            yield _one_line(described[2])
        elif not _DESCRIPTION.match(text):
            yield _one_line(text)


def _tmx(content, language, other):
    # The elements are deleted as they are read: a memory has millions.
    for _, element in ElementTree.iterparse(content):
        if element.tag != "tu":
            continue
        texts = {}
        for variant in element.iter("tuv"):
            code = variant.get(_LANGUAGE, variant.get("lang", "")).lower()
            segment = variant.find("seg")
            if segment is not None:
                texts[code] = _one_line("".join(segment.itertext()))
        if texts.get(language) and texts.get(other):
            yield texts[language]
        element.clear()


def _one_line(text: str) -> bytes:
    return _SPACES.sub(" ", text).strip(" ").encode()


@contextlib.contextmanager
def _damage_refused(archive: Path, part: str):
    try:
        yield
    except _DAMAGES as error:
        if getattr(error, "errno", None) is not None:  # of the system
            raise
        raise UserError(
            f"{archive}: {part} is damaged ({error}). Delete it to have it "
            "fetched again, or get another copy."
        ) from error


@contextlib.contextmanager
def _open_member(archive: Path, path: str):
    """Opens a member of a tar or zip archive, or a file, also compressed."""
    with contextlib.ExitStack() as stack:
        if not path:
            _, content, _ = stack.enter_context(unpacked(archive))
            yield content
        elif zipfile.is_zipfile(archive):
            files = stack.enter_context(zipfile.ZipFile(archive))
            if path not in files.namelist():
                raise UserError(_no_member(archive, path, files.namelist()))
            yield stack.enter_context(files.open(path))
        else:
            # As a stream, since going back would unpack the archive again.
            _, content, _ = stack.enter_context(unpacked(archive))
            files = stack.enter_context(
                tarfile.open(fileobj=content, mode="r|")
            )
            yield _tar_member(files, archive, path)


def _tar_member(files, archive, path):
    names = []
    for info in files:
        name = info.name.removeprefix("./")
        names.append(name)
        if name == path and info.isreg():
            return io.BufferedReader(files.extractfile(info))
    raise UserError(_no_member(archive, path, names))


def _no_member(archive, path, names):
    shown = ", ".join(sorted(names)[:20])
    return f"{archive}: has no file {path}. It holds {shown}."
