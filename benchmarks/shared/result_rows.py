"""Rows of measurements: read from and appended to CSV files."""

import csv
import datetime
import os
import platform
import statistics
import subprocess
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def git_commit(repository=REPOSITORY):
    """Returns the short hash of the commit of this or of another checkout.

    A `+` is appended if files of `keras_deepnmt` differ from that commit. A
    copy without history is of the commit that `DEEPNMT_COMMIT` names.
    """
    named = os.environ.get("DEEPNMT_COMMIT")
    if named and not (Path(repository) / ".git").exists():
        return named
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    changed = subprocess.run(
        [
            *("git", "status", "--porcelain", "--", "keras_deepnmt"),
            # This file holds measurements, so that it changes while measuring.
            ":(exclude)keras_deepnmt/zoo/measured_costs.csv",
        ],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return commit + ("+" if changed else "")


def machine():
    """Describes the machine: architecture, processor and number of cores.

    The processor's family determines the width of its vector instructions.
    """
    names = ("model name", "cpu family", "model")
    fields = {}
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    parts = [f"{name} {fields[name]}" for name in names if name in fields]
    return ", ".join([platform.machine(), *parts, f"{os.cpu_count()} cores"])


def provenance(*packages):
    """Returns the first columns of a row: date, commit, machine, versions.

    `packages` are the installed packages whose versions become columns.
    """
    return {
        "date": datetime.date.today().isoformat(),
        "commit": git_commit(),
        "machine": machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def range_columns(name, values):
    """Returns columns for median, minimum and maximum, empty without values."""
    functions = {"median": statistics.median, "min": min, "max": max}
    return {
        f"{name}_{suffix}": round(function(values), 3) if values else ""
        for suffix, function in functions.items()
    }


def read_rows(path):
    """Returns the rows of a CSV file; an empty list if there is no file."""
    path = Path(path)
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append_row(path, row):
    """Appends one row to a CSV file; see `append_rows`."""
    append_rows(path, [row])


def append_rows(path, rows):
    """Appends rows with the same columns to a CSV file.

    Columns that are new to the file stay empty in its old rows. Raises a
    `ValueError` if the file has a column that the rows do not have.
    """
    path = Path(path)
    columns = list(rows[0])
    _write(path, columns, [*_read_with_columns(path, columns), *rows])


def write_rows(path, rows):
    """Writes rows with the same columns to a CSV file, in place of its rows."""
    _write(Path(path), list(rows[0]), rows)


def replace_row(path, row, key):
    """Writes a row to a CSV file, replacing the row with the same key.

    `key` is the column that identifies a row. Raises a `ValueError` if the file
    has a column that the row does not have.
    """
    path = Path(path)
    columns = list(row)
    rows = {old[key]: old for old in _read_with_columns(path, columns)}
    rows[row[key]] = row
    _write(path, columns, rows.values())


def _read_with_columns(path, columns):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        old = list(reader)
    if not set(reader.fieldnames) <= set(columns):
        raise ValueError(
            f"The row must have every column of the file. {path} has other "
            f"columns than the row. Received: columns={columns}, the file "
            f"has {reader.fieldnames}."
        )
    return old


def _write(path, columns, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".partial")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, "", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, path)
