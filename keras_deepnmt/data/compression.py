"""Opens files that may be compressed, by how they begin."""

import bz2
import contextlib
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from keras_deepnmt.errors import UserError

# So many bytes of a file say how it is compressed.
HEAD_BYTES = 16
_BZIP2 = b"BZh"
# What follows the size in a bzip2 file: a block, or the end.
_BZIP2_NEXT = (b"1AY&SY", b"\x17rE8P\x90")


def compression_of(head: bytes) -> str | None:
    r"""Names the compression of a file that begins so; `None` of other files.

    Example:
    >>> compression_of(b"\x1f\x8b\x08"), compression_of(b"BZh is a name")
    ('gzip', None)
    """
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "Zstandard"
    if head.startswith(_BZIP2) and head[4:10] in _BZIP2_NEXT:
        return "bzip2"
    return None


def opener_of(compression: str, path: Path) -> Callable[..., BinaryIO]:
    """Returns what opens a compressed file, like `gzip.open`.

    A package that is needed but not installed raises a `UserError`, which names
    the file `path`.
    """
    if compression != "Zstandard":
        return {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}[
            compression
        ]
    try:
        from backports import zstd
    except ImportError as error:
        raise UserError(
            f"{path}: Zstandard files need the package `backports.zstd`. "
            "Install it with `pip install keras_deepnmt[zstd]`, or unpack the "
            "file."
        ) from error
    return zstd.open


def is_damage(error: Exception) -> bool:
    """Whether an error of reading says that a compressed file is damaged.

    Example:
    >>> is_damage(EOFError()), is_damage(FileNotFoundError(2, "no file"))
    (True, False)
    """
    if isinstance(error, EOFError | zlib.error | lzma.LZMAError):
        return True
    if isinstance(error, OSError):  # of bz2 and gzip, without a number
        return error.errno is None
    return type(error).__name__ == "ZstdError"


@contextlib.contextmanager
def unpacked(path: Path, name: Path | None = None) -> Iterator[tuple]:
    """Opens a file, compressed or not, to read it from the beginning.

    Yields the file itself, whose position says how much of it was read, its
    unpacked content, and the name of its compression or `None`. Errors call the
    file `name`, by default its path.
    """
    with open(path, "rb") as raw:
        compression = compression_of(raw.peek(HEAD_BYTES)[:HEAD_BYTES])
        if compression is None:
            yield raw, raw, None
            return
        with opener_of(compression, name or path)(raw) as content:
            yield raw, content, compression


def is_empty(path: str | Path) -> bool:
    """Whether there is a file without content, perhaps after it is unpacked.

    `False` for a pipe, which can be read only once, and for a file that cannot
    be read: its reader says why.

    Example:
    >>> written = Path("a.de").write_text("")
    >>> is_empty("a.de"), is_empty("missing.de")
    (True, False)
    """
    if not Path(path).is_file():
        return False
    try:
        with unpacked(Path(path)) as (_, content, _):
            return not content.read(1)
    except Exception as error:
        if not isinstance(error, OSError) and not is_damage(error):
            raise
        return False


@contextlib.contextmanager
def packed(file: BinaryIO, name: str | Path) -> Iterator[BinaryIO]:
    """Compresses what is written to a file, as the end of its name says.

    The ends are `.gz`, `.xz`, `.zst` and `.bz2`; with another one the file is
    written as it is.
    """
    compression = _ENDINGS.get(Path(name).suffix.lower())
    if compression is None:
        yield file
    elif compression == "gzip":
        # Without the time, so that the same text gives the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as content:
            yield content
    else:
        with opener_of(compression, Path(name))(file, "wb") as content:
            yield content


_ENDINGS = {".gz": "gzip", ".xz": "xz", ".zst": "Zstandard", ".bz2": "bzip2"}
