"""Files of subword-nmt: codes, and vocabularies with frequencies."""

import re
from pathlib import Path

from keras_deepnmt.errors import UserError

_HEADER = "#version:"
_VERSIONS = ("0.1", "0.2")


def read_codes(file: Path) -> dict[str, object]:
    """Reads the options `codes` and `version` of `MergeOptions` from a file.

    `subword-nmt learn-bpe` wrote it. Its first line names the version; codes
    without such a line are of version 0.1.
    """
    lines = _read(file).rstrip("\n").split("\n")
    version, first = "0.1", 1
    if lines[0].startswith(_HEADER):
        version = re.sub(r"(\.0+)*$", "", lines.pop(0).split()[-1])
        first = 2
    if version not in _VERSIONS:
        raise UserError(
            f"{file}, line 1: the version of the codes must be "
            f"{' or '.join(_VERSIONS)}. Received: {version}"
        )
    codes = [line.strip("\r\n ") for line in lines]
    for number, code in enumerate(codes, start=first):
        if code.count(" ") != 1:
            raise UserError(
                f"{file}, line {number}: must be two pieces with a space "
                f"between them, as `subword-nmt learn-bpe` writes. Received: "
                f"{code[:80]!r}"
            )
    return {"codes": codes, "version": version}


def read_frequent_pieces(file: Path, threshold: int) -> list[str]:
    """Reads the pieces whose frequency in a vocabulary is at least `threshold`.

    `subword-nmt get-vocab` wrote the file, with a piece and its frequency in
    each line.
    """
    found = []
    for number, line in enumerate(_read(file).splitlines(keepends=True), 1):
        piece, _, frequency = line.strip("\r\n ").partition(" ")
        if not piece or not frequency.isdecimal():
            raise UserError(
                f"{file}, line {number}: must be a piece, a space and its "
                f"frequency. Received: {line[:80]!r}"
            )
        if int(frequency) >= threshold:
            found.append(piece)
    return found


def _read(file) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{file}: must be codes or a vocabulary of subword-nmt, in UTF-8. "
            f"Byte {error.start} is not."
        ) from error
