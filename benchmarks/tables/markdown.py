"""Formats rows of measurements as Markdown tables."""

import math
import re


def markdown_table(headings, rows):
    """Returns a Markdown table; headings and cells are strings."""
    separator = ["---"] * len(headings)
    lines = [headings, separator, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table_section(title, rows, columns, note=""):
    """Returns the blocks of a section with one table; none without rows.

    `columns` maps each heading to a function of a row that returns the cell.
    The table is followed by the date, the machine and the note.
    """
    if not rows:
        return []
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return [
        f"### {title}",
        markdown_table(columns, cells),
        f"{measured_when_and_where(rows)} {note}".strip(),
    ]


def newest_rows(rows, *columns):
    """Returns the last row for each combination of values in the columns."""
    newest = {}
    for row in rows:
        newest[tuple(row[column] for column in columns)] = row
    return list(newest.values())


def measured_when_and_where(rows):
    """Returns a sentence with the dates and the machines of the rows."""
    dates = sorted({row["date"] for row in rows})
    machines = sorted({_kind_of_machine(row) for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Measured {when} on {listed(machines)}."


def _kind_of_machine(row):
    text = row.get("machine") or row["device"]
    accelerators = re.search(r"accelerators\W+\[['\"]?([^\]'\"]+)", text)
    if accelerators:
        return accelerators[1]
    cores = re.search(r"(\d+) cores|cores\W+(\d+)", text)
    if not cores:
        return text
    number = cores[1] or cores[2]
    return f"a CPU with {number} core{'' if number == '1' else 's'}"


def listed(names):
    """Formats a list of names: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def count(text):
    """Formats a whole number: 8,000."""
    return f"{float(text):,.0f}"


def millions(text):
    """Formats a number of parameters: 1.96 M."""
    return f"{float(text) / 1e6:.2f} M"


def decimals(text, digits):
    """Formats a number with fixed decimals; an empty cell if it is empty."""
    return f"{float(text):,.{digits}f}" if text else ""


def ratio(text):
    """Formats a ratio with two decimals; an empty cell if it is empty."""
    return decimals(text, 2)


def ratio_range(row, name):
    """Formats the smallest and the largest value of a ratio's rounds."""
    return f"{ratio(row[f'{name}_min'])} to {ratio(row[f'{name}_max'])}"


def with_interval(mean, interval):
    """Formats a mean and half the width of its interval: 44.7 ± 7.6.

    The interval gets two significant digits. If it is zero, or unknown because
    there is only one value, the mean stands alone.
    """
    mean, interval = float(mean), float(interval)
    if not interval or math.isnan(interval):
        return f"{mean:.4g}"
    exponent = math.floor(math.log10(interval))
    digits = min(max(1 - exponent, 0), 4)
    return f"{mean:.{digits}f} ± {interval:.{digits}f}"
