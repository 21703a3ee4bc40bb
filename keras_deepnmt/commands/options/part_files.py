"""Files of results that keep what was finished when a command is stopped."""

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from keras_deepnmt.commands.terminal.failures import explain
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    DISK_FULL,
    bytes_sha256,
    keep_modes,
    lock_folder,
    open_unlinked,
    writable_file,
    write_json,
)
from keras_deepnmt.json_files import read_json

_logger = logging.getLogger(__name__)

# Of the content of the record.
_FORMAT = 2
_SEAL = "record_sha256"
_REMEDY = "Rename or delete it and the file beside it."


class PartFiles:
    """Files that are written as `NAME.part` and renamed at the end.

    Beside the part of the first file is its record, `NAME.part.json`: what the
    parts are made of, how many lines of the input they have, their sizes and
    hashes, what the caller needs to go on, and a hash of all that. If the block
    is left by an error, or the process is killed, the next process goes on
    after what `keep` was called for last.

    The first of `paths` is that of `--output`. `finish` writes this file, given
    its part and its path; by default it renames the part. `advice` is what to
    do about parts that cannot be gone on with, the end of a sentence.
    `record_file` is the path of the record.
    """

    def __init__(
        self,
        paths: Sequence[str],
        finish: Callable[[Path, Path], None] | None = None,
        advice: str = "or give --restart to begin again without what is "
        "finished.",
    ):
        self._advice = advice
        self._finishes = [finish or os.replace, *[os.replace] * len(paths)]
        self._name = paths[0]
        self._files = [writable_file(path) for path in paths]
        if len(set(self._files)) < len(self._files):
            raise UserError(
                f"{paths[0]}: is named for two results. Name another file for "
                "one of them."
            )
        self._parts = [
            file.with_name(f"{file.name}.part") for file in self._files
        ]
        self.record_file = Path(f"{self._parts[0]}.json")
        self._streams: list[TextIO] = []
        self._hashes = [hashlib.sha256() for _ in self._files]
        self._record: dict[str, Any] = {}
        self._lock: int | None = None
        self._has_kept_more = False

    @property
    def streams(self) -> list[TextIO]:
        """The open parts, to which lines are added, after `begin`."""
        return self._streams

    @property
    def num_lines(self) -> int:
        """How many lines of the input are finished."""
        return self._record.get("lines", 0)

    @property
    def is_complete(self) -> bool:
        """Whether an earlier process wrote all and could not rename it."""
        return self._record.get("is_complete", False)

    def kept_before(self) -> dict[str, Any] | None:
        """Returns what an earlier process gave to `keep`, before `begin`.

        It is `None` at the beginning. `begin` compares what it was made of.
        """
        record = self._read_record()
        return record and record.get("state")

    def __enter__(self) -> "PartFiles":
        try:
            open_unlinked(self._parts[0], "a").close()
            self._lock = lock_folder(self._parts[0])
        except OSError as error:
            raise UserError(
                f"{self._name}: cannot be written ({error.strerror})."
            ) from error
        if self._lock is None:
            raise UserError(
                f"{self._name}: another process is writing it. Wait for it, or "
                "name another file."
            )
        return self

    def begin(
        self,
        made_of: Mapping[str, Any],
        surroundings: Mapping[str, Any],
        restart: bool,
        asked: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """Opens the parts, after what an earlier process finished.

        `made_of` is what the results depend on, by the names of options, and
        `surroundings` what changes at most the last digits of a score. `asked`
        has values of `made_of` as the user gave them, or `None`, where others
        may decide them: an error names those alone that the user changed, if
        there are any. `restart` begins again without what was finished.

        Returns what the earlier process gave to `keep`; `None` at the
        beginning.
        """
        record = {
            "format": _FORMAT,
            "made_of": made_of,
            "surroundings": surroundings,
            "asked": asked or {},
            "lines": 0,
            "sizes": [0] * len(self._parts),
        }
        # As the file has it: with lists in place of tuples.
        record = json.loads(json.dumps(record))
        found = self._read_record()
        if found and not restart:
            self._compare(found, record)
            record = found
        self._record = record
        if self.is_complete:
            return record.get("state")
        if not found or restart:
            self._write_record(record)
        for part, file, size in zip(
            self._parts, self._files, record["sizes"], strict=True
        ):
            stream = open_unlinked(part, "a", encoding="utf-8")
            self._streams.append(stream)
            # Nobody who may not read the file may read its part.
            keep_modes(file, part)
            stream.truncate(size)
        return record.get("state")

    def keep(self, lines: int, state: Mapping[str, Any]) -> None:
        """Records that so many lines of the input are finished.

        `state` is what `begin` returns to the process that goes on: anything
        that JSON can hold.
        """
        sizes = self._flush()
        record = {**self._record, "lines": lines, "state": dict(state)}
        record |= {"sizes": sizes, "sha256": self._digests()}
        record["lines_of_state"] = 0
        # A signal may come while it is written: the part must then not be cut
        # to a smaller size than the file says.
        before, self._record = self._record, record
        try:
            self._write_record(record)
        except OSError:
            self._record = before
            raise
        self._has_kept_more = True

    def keep_state(self, state: Mapping[str, Any], lines: int) -> None:
        """Records what the process that goes on needs besides the parts.

        `state` is as in `keep`; it has the results of `lines` more lines.
        """
        record = {**self._record, "state": dict(state), "lines_of_state": lines}
        self._write_record(record)
        self._record = record
        self._has_kept_more = True

    def __exit__(self, kind, error, traceback) -> None:
        try:
            if kind is None:
                self._finish()
            else:
                self._stop()
        finally:
            os.close(self._lock)
        kept = self._describe_kept()
        if isinstance(error, KeyboardInterrupt):
            # SIGTERM keeps its exit code.
            raise type(error)(f"interrupted. {kept}") from None
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise UserError(
                f"{self._name}: {os.strerror(error.errno)}. {kept} Free some "
                "space, and run the same command again."
            ) from error
        if self._has_kept_more and isinstance(error, Exception):
            reason = explain(error)
            if reason is not None:
                raise UserError(f"{reason} {kept}") from error

    @property
    def _num_kept(self):
        """The number of lines with results, in the parts or in the record."""
        record = self._record
        return record.get("lines", 0) + record.get("lines_of_state", 0)

    def _describe_kept(self):
        if not self._num_kept:
            return f"{self._name} was not written."
        lines = self._record["lines"]
        more = self._record.get("lines_of_state", 0)
        place = f"{self._name}.part"
        if more:
            place += f" and {more:,} more in {place}.json" if lines else ".json"
        return (
            f"{lines or more:,} lines are finished, in {place}; the same "
            "command goes on after them."
        )

    def _flush(self):
        """Writes what was added to the disk; returns the sizes of the parts."""
        for number, stream in enumerate(self._streams):
            stream.flush()
            os.fsync(stream.fileno())
            with open(self._parts[number], "rb") as part:
                part.seek(self._record["sizes"][number])
                while block := part.read(1 << 20):
                    self._hashes[number].update(block)
        return [os.fstat(s.fileno()).st_size for s in self._streams]

    def _digests(self):
        return [digest.hexdigest() for digest in self._hashes]

    def _finish(self):
        if not self.is_complete:
            sizes = self._flush()
            self._record |= {"sizes": sizes, "sha256": self._digests()}
            self._record["is_complete"] = True
            for stream in self._streams:
                stream.close()
            self._write_record(self._record)
        for part, file, size, finish in zip(
            self._parts,
            self._files,
            self._record["sizes"],
            self._finishes[: len(self._files)],
            strict=True,
        ):
            # An earlier process may have renamed it, and this one may have
            # made an empty part again, for its lock.
            if part.exists() and _size(part) == size:
                finish(part, file)
            part.unlink(missing_ok=True)
        self.record_file.unlink()

    def _stop(self):
        """Leaves the parts with what is finished, or as they were before."""
        for number, stream in enumerate(self._streams):
            with contextlib.suppress(OSError):  # again, of a full disk
                stream.close()
            # A header without lines goes together with the record.
            size = self._record["sizes"][number] if self._num_kept else 0
            os.truncate(self._parts[number], size)
        if self._streams and self._num_kept:
            # The file may have those before, if a signal came meanwhile.
            with contextlib.suppress(OSError):
                self._write_record(self._record)
        elif self._streams:
            self.record_file.unlink(missing_ok=True)
        for part in self._parts:
            if part.exists() and not _size(part):
                part.unlink()

    def _write_record(self, record):
        write_json(self.record_file, {**record, _SEAL: _seal(record)})

    def _read_record(self):
        """Returns the record of earlier processes, or `None`."""
        if self.record_file.exists():
            record = read_json(self.record_file, remedy=_REMEDY)
            is_whole = isinstance(record, dict)
            is_whole = is_whole and record.pop(_SEAL, None) == _seal(record)
            if not is_whole or record.get("format") != _FORMAT:
                raise UserError(
                    f"{self.record_file}: not written by this version of "
                    f"deepnmt, or damaged. {_REMEDY}"
                )
            return record
        for part in self._parts:
            if _size(part):
                raise UserError(
                    f"{part}: exists without {self.record_file.name}, which "
                    "would say what it is made of. Rename or delete it."
                )
        return None

    def _compare(self, found, record):
        """Refuses parts that are not what this command would have written."""
        changes = describe_changes(found, record)
        if changes:
            raise UserError(
                f"{self._name}.part was begun with {', '.join(changes)}. Give "
                f"the same command, {self._advice}"
            )
        for number, size in enumerate(found["sizes"]):
            part = self._parts[number]
            is_kept = self._begins_with(number, size, found)
            if found.get("is_complete"):
                is_kept &= _size(part) == size
                # An earlier process may have renamed it.
                is_kept |= self._files[number].exists() and not _size(part)
            if not is_kept:
                raise UserError(
                    f"{part}: was changed after it was written. Put the old "
                    f"file back, {self._advice}"
                )
        old, new = found["surroundings"], record["surroundings"]
        for name in new:
            if old.get(name) != new[name]:
                _logger.warning(
                    "%s.part was begun with %s: %s, not %s. Scores may differ "
                    "in their last digits, and so may a few translations.",
                    *(self._name, name, old.get(name), new[name]),
                )

    def _begins_with(self, number, size, found):
        """Whether a part begins with what was kept; hashes it."""
        if not size:
            return True
        part = self._parts[number]
        if _size(part) < size:
            return False
        with open(part, "rb") as stream:
            left = size
            while block := stream.read(min(left, 1 << 20)):
                self._hashes[number].update(block)
                left -= len(block)
        return self._hashes[number].hexdigest() == found["sha256"][number]


def describe_changes(
    found: Mapping[str, Any], record: Mapping[str, Any]
) -> list[str]:
    """Names what a command would make its results of, unlike an earlier one.

    Both have `made_of` and, if they like, `asked`, which `PartFiles.begin`
    describes.
    """
    old, new = found["made_of"], record["made_of"]
    names = [
        name
        for name in [*new, *sorted(old.keys() - new.keys())]
        if old.get(name) != new.get(name)
    ]
    before, after = found.get("asked", {}), record.get("asked", {})
    follows = [
        name
        for name in names
        if name in before and before[name] == after.get(name)
    ]
    return [
        _describe_change(name, old.get(name), new.get(name))
        for name in names
        if name not in follows or len(follows) == len(names)
    ]


def _seal(record):
    """The hash of a record, by which a damaged one is known."""
    return bytes_sha256(json.dumps(record, sort_keys=True).encode())


def _describe_change(name, old, new):
    if isinstance(old, dict) or isinstance(new, dict):
        return f"another {name}"
    return f"{name} {_shown(old)}, not {_shown(new)}"


def _shown(value):
    if value is None:
        return "left out"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _size(path):
    return path.stat().st_size if path.exists() else 0
