"""The table of many clients of a server."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import decimals, newest_rows, table_section

RESULTS = Path(__file__).parents[1] / "serving" / "results" / "load.csv"
_PARTS = {
    "one": "one after the other",
    "many": "at once",
    "killed": "at once, the server killed in the middle",
}


def load_table():
    """Returns the Markdown blocks of the table."""
    return table_section(
        "Many clients",
        newest_rows(read_rows(RESULTS), "engine", "part"),
        {
            "engine": lambda row: row["engine"],
            "clients": lambda row: row["clients"],
            "requests": lambda row: _PARTS[row["part"]],
            "seconds": lambda row: decimals(row["seconds"], 0),
            "sentences/s": lambda row: decimals(row["sentences_per_second"], 1),
            "median (ms)": lambda row: decimals(row["median_ms"], 0),
            "99 % (ms)": lambda row: decimals(row["p99_ms"], 0),
            "lost": lambda row: row["lost"],
            "sent again": lambda row: (
                f"{int(row['refused']) + int(row['failed']):,}"
            ),
            "memory (MiB)": lambda row: decimals(row["mib"], 0),
            # Of a server that was killed only the end was seen.
            "more memory later (%)": lambda row: (
                ""
                if row["part"] == "killed"
                else decimals(row["mib_growth_percent"], 1)
            ),
        },
    )
