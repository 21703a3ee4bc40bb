"""Rows of measurements: appended to a CSV, never typed."""

import csv
import os
import subprocess
from pathlib import Path


def git_commit():
    """Gives the commit that is measured, with `+` if files differ from it."""
    folder = Path(__file__).parent
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "../keras_deepnmt"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return commit + ("+" if changed else "")


def append_row(path, row):
    """Adds one row to a CSV, and its header if it is new.

    Args:
        path: the CSV file.
        row: dict of the columns.

    Raises:
        ValueError: if the file has other columns.
    """
    path = Path(path)
    rows = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            if reader.fieldnames != list(row):
                raise ValueError(
                    f"{path} has other columns than the row. Received: "
                    f"{list(row)}, the file has {reader.fieldnames}."
                )
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".partial")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*rows, row])
    os.replace(temporary, path)
