"""Rows of measurements: appended to a CSV, never typed."""

import csv
import datetime
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path


def git_commit():
    """Gives the commit that is measured, with `+` if files differ from it."""
    folder = Path(__file__).parents[2]
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    changed = subprocess.run(
        [
            *("git", "status", "--porcelain", "--", "keras_deepnmt"),
            # Measurements themselves, carried by the package.
            ":(exclude)keras_deepnmt/zoo/measured_costs.csv",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return commit + ("+" if changed else "")


def machine():
    """Names the processor: its family decides how wide its arithmetic is."""
    names = ("model name", "cpu family", "model")
    found = {}
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    words = [f"{name} {found[name]}" for name in names if name in found]
    return ", ".join([platform.machine(), *words, f"{os.cpu_count()} cores"])


def origin(*packages):
    """Says when, of what, where and with what a row was measured.

    Args:
        *packages: installed packages whose versions matter.

    Returns:
        Dict of the first columns of a row.
    """
    return {
        "date": datetime.date.today().isoformat(),
        "commit": git_commit(),
        "machine": machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def read_rows(path):
    """Reads the rows of a table, none if there is no such file.

    Args:
        path: the CSV file.

    Returns:
        List of dicts of strings.
    """
    path = Path(path)
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append_row(path, row):
    """Adds one row to a CSV, and its header if it is new.

    Args:
        path: the CSV file.
        row: dict of the columns.

    Raises:
        ValueError: if the file has other columns.
    """
    append_rows(path, [row])


def append_rows(path, rows):
    """Adds rows to a CSV, and its header if it is new.

    Columns that the file does not have yet stay empty in its old rows.

    Args:
        path: the CSV file.
        rows: list of dicts of the same columns.

    Raises:
        ValueError: if the file has a column that the rows do not have.
    """
    path = Path(path)
    columns = list(rows[0])
    _write(path, columns, [*_read(path, columns), *rows])


def replace_row(path, row, key):
    """Puts one row into a CSV that has one row for each value of a column.

    Args:
        path: the CSV file.
        row: dict of the columns.
        key: str. The column.

    Raises:
        ValueError: if the file has a column that the row does not have.
    """
    path = Path(path)
    columns = list(row)
    rows = {old[key]: old for old in _read(path, columns)}
    rows[row[key]] = row
    _write(path, columns, rows.values())


def _read(path, columns):
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        old = list(reader)
    if not set(reader.fieldnames) <= set(columns):
        raise ValueError(
            f"{path} has other columns than the row. Received: "
            f"{columns}, the file has {reader.fieldnames}."
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
