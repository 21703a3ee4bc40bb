"""The code that a run or a preset folder has kept: checked, then run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.code_file import (
    CODE_DIR,
    CodeFile,
    located,
    read_code,
)
from keras_deepnmt.own_code.loading import preferred, use_code, warn_once

Records = Sequence[Mapping[str, str]]


def code_record(code: CodeFile) -> dict[str, str]:
    """Returns what a folder records of a file or an installed module.

    `origin` is the user's own file, of which `file` is the copy.
    """
    if code.is_module:
        return {"module": code.name, "sha256": code.sha256}
    return {
        # The version of a model that is being replaced stays, too.
        "file": f"{CODE_DIR}/{code.sha256[:8]}/{code.path.name}",
        "sha256": code.sha256,
        "origin": str(code.path),
    }


def recorded_entries(records: Records, folder: Path) -> list[str]:
    """Returns the entries of `import` that `records` of a folder stand for.

    Example:
    >>> recorded_entries([{"module": "mine", "sha256": "7"}], Path("runs/demo"))
    ['mine']
    """
    return [
        record.get("module") or located(record["file"], folder)
        for record in records
    ]


def use_recorded(records: Records, entries: Sequence[str]) -> None:
    """Runs the code that a folder keeps, as `use_code` does.

    A file that the user gives in place of a copy is used, and a warning says
    so if it differs. If the file that was copied has changed since, the copy is
    used, with a warning. A copy that is missing or was changed is refused.
    `records` is what `code_record` returned when the folder was written, and
    `entries` what `recorded_entries` returns for them.
    """
    for record, entry in zip(records, entries, strict=True):
        given = preferred(entry)
        if given is not None:
            if given.sha256 != record["sha256"]:
                warn_once(
                    given.entry,
                    "is used. It differs from the code that the model was "
                    f"trained with, {entry}.",
                )
        elif "module" in record:
            if read_code(entry).sha256 != record["sha256"]:
                warn_once(
                    entry,
                    "this installed module has changed since the model was "
                    "trained. It is used as it is now.",
                )
        else:
            _check_copy(record, entry)
    use_code(entries)


def _check_copy(record, entry):
    origin = record.get("origin", entry)
    if not Path(entry).is_file():
        raise UserError(
            f"{entry}: missing. It is the code of the model's own layers. Give "
            f"it by --import {Path(origin).name}."
        )
    if read_code(entry).sha256 != record["sha256"]:
        raise UserError(
            f"{entry}: not the file that the model was trained with, whose "
            f"SHA-256 is {record['sha256']}. To use it all the same, give "
            f"--import {entry}."
        )
    if Path(origin).is_file() and read_code(origin).sha256 != record["sha256"]:
        warn_once(
            origin,
            f"has changed since it was copied to {entry}, which is used. "
            f"--import {origin} uses the changed file.",
        )
