"""Builds a text from members of archives.

Nothing is unpacked: members are read from the archive by the names that the
registry gives, so a path in an archive is never one on the disk.
"""

import contextlib
import gzip
import html
import io
import itertools
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from keras_deepnmt.data.known_corpora.sources import BuiltFile, Member
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
# Not `str.split()`, which also takes the spaces of other scripts.
_SPACES = re.compile(r"[ \t\r\n]+")
_DESCRIBED = re.compile(r"^\s*<(title|description)>(.*)</\1>\s*$")
_DESCRIPTION = re.compile(
    r"^\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc|transcript)\b"
)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def build_text(file: BuiltFile, archives: dict[str, Path], path: Path) -> None:
    """Writes the text of a file to `path`, one sentence a line.

    `archives` maps the name of each archive to its path.

    Raises:
        UserError: if an archive is damaged or lacks a member.
    """
    with atomic_file(path) as temporary, open(temporary, "wb") as text:
        for member in file.members:
            where = archives[member.archive.name]
            try:
                with _open_member(where, member.path) as content:
                    for line in read_sentences(content, member):
                        text.write(line + b"\n")
            except (
                tarfile.TarError,
                zipfile.BadZipFile,
                zlib.error,
                EOFError,
                gzip.BadGzipFile,
                ElementTree.ParseError,
                UnicodeDecodeError,
            ) as error:
                raise UserError(
                    f"{where}: {member.path or 'the file'} is damaged "
                    f"({error})."
                ) from error


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
def _open_member(archive: Path, path: str):
    """Opens a member of a tar or zip archive, or a (gzipped) file."""
    with contextlib.ExitStack() as stack:
        if not path:
            raw = stack.enter_context(open(archive, "rb"))
            gzipped = raw.peek(2)[:2] == b"\x1f\x8b"
            yield gzip.GzipFile(fileobj=raw) if gzipped else raw
        elif zipfile.is_zipfile(archive):
            files = stack.enter_context(zipfile.ZipFile(archive))
            if path not in files.namelist():
                raise UserError(_no_member(archive, path, files.namelist()))
            yield stack.enter_context(files.open(path))
        else:
            # As a stream, since going back would unpack the archive again.
            files = stack.enter_context(tarfile.open(archive, "r|*"))
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
