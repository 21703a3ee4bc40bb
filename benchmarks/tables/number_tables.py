"""The table of unseen numbers."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    with_interval,
)
from keras_deepnmt.evaluation import seed_statistics

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def number_tables():
    """Returns the Markdown blocks about the copying of numbers."""
    rows = read_rows(RESULTS / "number_copying.csv")
    if not rows:
        return []
    groups = {}
    for row in rows:
        groups.setdefault(row["split_digits"], []).append(row)
    table = markdown_table(
        ["`split_digits`", "unseen numbers copied (%)", "BLEU", "seeds"],
        [
            [
                value.lower(),
                _mean(
                    100 * int(row["copied"]) / int(row["numbers"])
                    for row in group
                ),
                _mean(float(row["test_bleu"]) for row in group),
                str(len(group)),
            ]
            for value, group in groups.items()
        ],
    )
    first = rows[0]
    return [
        "### Unseen numbers",
        "`number_copying.csv`",
        table,
        f"{measured_when_and_where(rows)} `{first['recipe']}` with made-up "
        "numbers of 1 to 7 digits in its training text, "
        f"{count(first['updates'])} updates. A number is copied if the "
        f"translation has it exactly: {count(first['numbers'])} sentences, "
        "each with a number of 7 digits that is not in the training text. "
        f"BLEU is that of {count(first['test_sentences'])} sentences without "
        f"digits; `{first['signature']}`. ± is the 95 % interval of the mean "
        "over the seeds, Student's.",
    ]


def _mean(values):
    found = seed_statistics(list(values))
    return with_interval(found.mean, found.interval)
