"""The tables of unseen numbers and of vocabularies that grow."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    with_interval,
)
from benchmarks.tables.seed_statistics import mean_and_interval

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def number_tables():
    """Returns the Markdown blocks about the copying of numbers."""
    rows = read_rows(RESULTS / "number_copying.csv")
    if not rows:
        return []
    groups = _groups(rows, "split_digits")
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
            for (value,), group in groups.items()
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


def extension_tables():
    """Returns the Markdown blocks about vocabularies that grow."""
    rows = read_rows(RESULTS / "vocabulary_extension.csv")
    if not rows:
        return []
    table = markdown_table(
        [
            "text",
            "new pieces",
            "unknown tokens, source and target",
            "tokens per sentence, source and target",
            "BLEU",
            "seeds",
        ],
        [
            [
                domain,
                count(pieces),
                " and ".join(
                    count(group[0][f"{side}_unknown_tokens"])
                    for side in ("source", "target")
                ),
                " and ".join(
                    group[0][f"{side}_tokens_per_sentence"]
                    for side in ("source", "target")
                ),
                _mean(float(row["bleu"]) for row in group),
                str(len(group)),
            ]
            for (domain, pieces), group in _groups(
                rows, "domain", "extend_vocabulary"
            ).items()
        ],
    )
    first = rows[0]
    return [
        "### Fine-tuning with a larger vocabulary",
        "`vocabulary_extension.csv`",
        table,
        f"{measured_when_and_where(rows)} The model of `{first['recipe']}`, "
        f"fine-tuned for {count(first['updates'])} updates on "
        f"{count(first['pairs'])} pairs of another text. Tokens are those of "
        "the training text, BLEU is that of "
        f"{count(first['test_sentences'])} test sentences; "
        f"`{first['signature']}`.",
    ]


def _groups(rows, *columns):
    """Sorts rows into groups with the same values in columns."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def _mean(values):
    return with_interval(*mean_and_interval(list(values)))
