"""The folder of translated files: what it was made with, what is finished."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_deepnmt.commands.options.part_files import (
    PartFiles,
    describe_changes,
)
from keras_deepnmt.commands.shards.files import (
    PART_ENDINGS,
    RECORD_FILE,
    REPORTS,
    Shard,
)
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.data.compression import is_empty, packed
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file, lock_folder, write_json
from keras_deepnmt.json_files import read_json

# Of the lines with one fault, in the report of a file.
MOST_NUMBERS = 1_000
_FORMAT = 1
_OTHER_FOLDER = "Choose another folder for `--output`."


class OutputFolder:
    """A folder with a file of translations for each file, and a report.

    `translate-files.json` says what the translations are made of. A file gets
    its name when it is complete, and was read again; its report, in `reports/`,
    is there before. Beside a file that is not finished is a part of it, see
    `PartFiles`; `PartFiles.begin` explains `made_of` and `surroundings`.
    """

    def __init__(
        self,
        path: Path,
        made_of: Mapping[str, Any],
        surroundings: Mapping[str, Any],
    ):
        self.path = path
        self._made_of = dict(made_of)
        self._surroundings = dict(surroundings)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the folder if it is new, and locks it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.path)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror})."
            ) from error
        if lock is None:
            raise UserError(
                f"{self.path}: another process is writing it. Wait for it, or "
                "choose another folder."
            )
        try:
            self._check_record()
            (self.path / REPORTS).mkdir(exist_ok=True)
            yield
        finally:
            os.close(lock)

    def is_finished(self, shard: Shard) -> bool:
        """Whether a file has been translated.

        Refuses one whose size has changed since then, or that of whose
        translation has.
        """
        if not shard.output.exists():
            return False
        file = self._report_file(shard)
        if not file.exists():
            raise UserError(
                f"{shard.output}: was not written by this command. Rename or "
                "delete it."
            )
        report = read_json(file, dict, "Delete it and the file it is about.")
        for path, name in ((shard.source, "input"), (shard.output, "output")):
            size = path.stat().st_size
            found = report.get(name, {}).get("bytes", 0)
            if found != size:
                raise UserError(
                    f"{path}: has {size:,} bytes, but had {found:,} when "
                    f"{shard.output} was finished. Put the old file back, or "
                    f"delete {shard.output} to have it made again."
                )
        # Of a process that was killed after the file had its name.
        for ending in PART_ENDINGS:
            Path(f"{shard.output}{ending}").unlink(missing_ok=True)
        return True

    def part_files(self, shard: Shard) -> PartFiles:
        """Returns the part of a file, which `finish` makes the whole of."""
        return PartFiles(
            [str(shard.output)],
            lambda part, file: self._finish(shard, part, file),
            f"or delete {shard.output}.part and {shard.output.name}.part.json.",
        )

    def begin(self, parts: PartFiles) -> dict[str, Any] | None:
        """Opens a part, see `PartFiles.begin`."""
        return parts.begin(self._made_of, self._surroundings, restart=False)

    def write_report(
        self, shard: Shard, state: Mapping[str, Any], lines: LineWarnings
    ) -> None:
        """Writes what is known of a file that is translated but not finished.

        `state` has the number of its lines, their hash, and the number of lines
        of the result.
        """
        write_json(
            self._report_file(shard),
            {
                "input": {
                    "file": str(shard.source),
                    "bytes": shard.source.stat().st_size,
                    "lines": state["lines"],
                    "sha256": state["sha256"],
                },
                "output": {"lines": state["written"]},
                "faults": {
                    fault: {"lines": count, "first": numbers}
                    for fault, (numbers, count) in lines.state.items()
                },
            },
        )

    def faults(self, shard: Shard) -> dict[str, int]:
        """Returns how many lines of a finished file have each fault."""
        report = read_json(self._report_file(shard), dict)
        return {
            fault: found["lines"]
            for fault, found in report.get("faults", {}).items()
        }

    def _report_file(self, shard):
        return self.path / REPORTS / f"{shard.output.name}.json"

    def _check_record(self):
        file = self.path / RECORD_FILE
        record = {
            "format": _FORMAT,
            "made_of": self._made_of,
            "surroundings": self._surroundings,
        }
        if not file.exists():
            if any(self.path.iterdir()):
                raise UserError(
                    f"{self.path}: has files, but no {RECORD_FILE}, which "
                    f"would say what they are made of. {_OTHER_FOLDER}"
                )
            write_json(file, record)
            return
        found = read_json(file, dict, _OTHER_FOLDER)
        if found.get("format") != _FORMAT or "made_of" not in found:
            raise UserError(
                f"{file}: not written by this version of deepnmt, or damaged. "
                f"{_OTHER_FOLDER}"
            )
        changes = describe_changes(found, record)
        if changes:
            raise UserError(
                f"{self.path}: has translations made with "
                f"{', '.join(changes)}. Give the same options, or choose "
                "another folder for `--output`."
            )

    def _finish(self, shard, part, file):
        """Compresses a part, reads it again, and gives it its name."""
        report_file = self._report_file(shard)
        report = read_json(report_file, dict)
        with atomic_file(file) as temporary:
            with (
                open(part, "rb") as lines,
                open(temporary, "wb") as raw,
                packed(raw, file.name) as content,
            ):
                shutil.copyfileobj(lines, content, 1 << 20)
            number = _num_lines(temporary)
            expected = report["output"]["lines"]
            if number != expected:
                raise OSError(
                    f"{file}: {number:,} lines were read again of {expected:,} "
                    "that were written. Is the disk damaged?"
                )
            report["output"]["bytes"] = temporary.stat().st_size
            write_json(report_file, report)


def _num_lines(file):
    return 0 if is_empty(file) else sum(1 for _ in LineReader(file))
