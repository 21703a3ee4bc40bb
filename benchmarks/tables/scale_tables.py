"""The tables of translations by several workers, and what many lines cost."""

from pathlib import Path
from statistics import median

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import decimals, table_section

RESULTS = Path(__file__).parents[1] / "scale" / "results"
# The lines that costs are for, and the numbers of cores.
LINES = 10**9
CORES = (2, 64, 1024)
# What the sentence under a table says of its rows.
_OF_ALL = ("date", "machine")


def scale_tables():
    """Returns the Markdown blocks of all tables."""
    rows = [dict(row) for row in read_rows(RESULTS / "workers.csv")]
    return [*_workers(rows), *_costs(rows), *_command(), *_kills()]


def _runs(rows):
    """Groups the rows of each measurement: its model and commit."""
    runs = {}
    for row in rows:
        name = (row["model"], row["num_beams"], row["commit"], row["date"])
        runs.setdefault(name, {}).setdefault(row["workers"], []).append(row)
    return runs


def _per_second(row):
    return float(row["lines"]) / float(row["seconds"])


def _per_processor(rows):
    """Lines in a second of a processor, the median of some rows."""
    return median(
        float(row["lines"]) / float(row["worker_seconds"]) for row in rows
    )


def _workers(rows):
    found = []
    for (model, beams, commit, date), by_number in _runs(rows).items():
        ratios = [
            _per_second(two) / _per_second(one)
            for one, two in zip(by_number["1"], by_number["2"], strict=True)
        ]
        found.append(
            {
                "model": f"`{model}`",
                "beams": beams,
                "rounds": str(len(ratios)),
                "two workers / one": f"{median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f})",
                "lines in a second of a core": " / ".join(
                    f"{_per_processor(by_number[n]):.1f}" for n in ("1", "2")
                ),
                "commit": commit,
                "date": date,
                "machine": by_number["1"][0]["machine"],
            }
        )
    return _table("One worker and two", found)


def _costs(rows):
    found = []
    for (model, beams, _, date), by_number in _runs(rows).items():
        seconds = LINES / _per_processor(by_number["2"])
        found.append(
            {
                "model": f"`{model}`",
                "beams": beams,
                "hours of a core": f"{seconds / 3600:,.0f}",
                **{
                    f"days on {cores:,} cores": decimals(
                        seconds / cores / 86400, 2
                    )
                    for cores in CORES
                },
                "date": date,
                "machine": by_number["1"][0]["machine"],
            }
        )
    return _table(
        "A billion lines, extrapolated",
        found,
        "Not measured: each core is taken to be as fast as those of two "
        "workers, with as long sentences.",
    )


def _command():
    found = [
        {
            "lines": f"{int(row['lines']):,}",
            "seconds of a processor": row["command_seconds"],
            "lines in a second": "{:,.0f}".format(
                float(row["lines"]) / float(row["command_seconds"])
            ),
            "commit": row["commit"],
            "date": row["date"],
            "machine": row["machine"],
        }
        for row in read_rows(RESULTS / "command.csv")
    ]
    return _table("What the command itself can pass on", found)


def _kills():
    found = [
        {
            "workers killed": row["workers_killed"],
            "commands killed": row["commands_killed"],
            "lines": f"{int(row['lines']):,}",
            "lost": row["lines_missing"],
            "too many": row["lines_too_many"],
            "other than undisturbed": row["lines_that_differ"],
            "commit": row["commit"],
            "date": row["date"],
            "machine": row["machine"],
        }
        for row in read_rows(RESULTS / "kills.csv")
    ]
    return _table("Killed at random moments", found)


def _table(title, rows, note=""):
    names = [n for n in (rows[0] if rows else ()) if n not in _OF_ALL]
    columns = {name: lambda row, name=name: row[name] for name in names}
    return table_section(title, rows, columns, note)
