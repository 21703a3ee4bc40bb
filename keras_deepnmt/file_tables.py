"""Tables of the files of a folder: sizes and hashes, written once, checked."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256

# Hashed when a folder is opened: at most half a second. Of what is larger, the
# size is compared, and the hash when all is verified.
_MOST_HASHED_BYTES = 256_000_000
# Each of their records has a checksum, which is compared when it is read.
_CHECKED_INSIDE = (".array_record",)

Table = Mapping[str, Mapping[str, int | str]]


def file_table(
    folder: str | Path, parts: Iterable[str] = (".",)
) -> dict[str, dict[str, int | str]]:
    """Returns the size and SHA-256 of each file of a folder, by its path.

    Only the files and folders `parts` of it count, by default all but what
    Python has compiled.

    Example:
    >>> size = Path("a.txt").write_text("a")
    >>> file_table(".", ["a.txt"])["a.txt"]["bytes"]
    1
    """
    folder = Path(folder)
    found = {}
    for part in parts:
        paths = [folder / part]
        if paths[0].is_dir():
            paths = [
                Path(place, name)
                for place, _, names in os.walk(paths[0])
                for name in names
            ]
        for path in paths:
            name = path.relative_to(folder).as_posix()
            if "__pycache__" not in path.parts:
                found[name] = path
    return {
        name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for name, path in sorted(found.items())
        if path.is_file()
    }


def changed_files(
    folder: str | Path, table: Table, verify: bool = False
) -> list[str]:
    """Lists the files of a table that are missing or were changed.

    All sizes are compared. Hashes are compared as far as that takes at most
    half a second, the smallest files first; with `verify` all of them.

    The table is as `file_table` returns it; `"bytes"` may be missing. Raises a
    `UserError` if it is not of this form, or names a file outside the folder.

    Example:
    >>> changed_files(".", {"lost.txt": {"bytes": 1, "sha256": "0" * 64}})
    ['lost.txt']
    """
    folder = Path(folder)
    _check(table, folder)
    changed, sizes = [], {}
    for name, row in table.items():
        path = folder / name
        if not path.is_file():
            changed.append(name)
            continue
        sizes[name] = path.stat().st_size
        if row.get("bytes", sizes[name]) != sizes[name]:
            changed.append(name)
    left = _MOST_HASHED_BYTES
    for name in sorted(sizes.keys() - set(changed), key=sizes.get):
        if not verify:
            if name.endswith(_CHECKED_INSIDE) or sizes[name] > left:
                continue
            left -= sizes[name]
        if _sha256(folder / name) != table[name]["sha256"]:
            changed.append(name)
    return [name for name in table if name in changed]


def check_files(
    folder: str | Path,
    table: Table,
    description: str,
    remedy: str,
    verify: bool = False,
) -> None:
    """Raises a `UserError` that names the first file of a table that differs.

    The message has the `description`, the name of the file that holds the
    table, and ends with the `remedy`, a sentence that says what the user can
    do. `table` and `verify` are as in `changed_files`.
    """
    for name in changed_files(folder, table, verify):
        path = Path(folder, name)
        if not path.is_file():
            raise UserError(f"{path} is missing. {remedy}")
        raise UserError(
            f"{path} is not the file that {description} lists: it has "
            f"{path.stat().st_size:,} bytes and SHA-256 {_sha256(path)[:12]}, "
            f"not {table[name].get('bytes', '?')} and "
            f"{table[name]['sha256'][:12]}. {remedy}"
        )


def _check(table, folder):
    for name, row in table.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise UserError(
                f"{folder}: the table of its files names one outside it: {name}"
            )
        size = row.get("bytes", 0) if isinstance(row, Mapping) else None
        if not isinstance(size, int) or not isinstance(row.get("sha256"), str):
            raise UserError(
                f"{folder}: damaged: the table of its files has no size and "
                f"SHA-256 of {name}."
            )


def _sha256(path):
    try:
        return file_sha256(path)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror})."
        ) from error
