"""The table of texts in capitals, with case kept and factored."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    newest_rows,
    with_interval,
)
from keras_deepnmt.evaluation import seed_statistics

# The recipe as it is, and with twice its updates.
_CHANGES = ("", '{"training.steps": 2000}')
RESULTS = Path(__file__).parents[1] / "quality" / "results"
_FORMS = {
    "ordinary": "BLEU of the test set",
    "all_caps": "in capitals",
    "capitalized": "with capitalized words",
}


def letter_case_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = [
        row
        for row in read_rows(results / "letter_case.csv")
        if row["changes"] in _CHANGES
    ]
    rows = newest_rows(rows, "updates", "case", "seed", "form")
    if not rows:
        return []
    kinds = sorted({(int(row["updates"]), row["case"]) for row in rows})
    lines = [
        _line(
            kind,
            [r for r in rows if (int(r["updates"]), r["case"]) == kind],
        )
        for kind in kinds
    ]
    return [
        markdown_table(
            ["updates", "`case`", "seeds", "tokens of a batch"]
            + list(_FORMS.values()),
            lines,
        ),
        f"{measured_when_and_where(rows)} `{rows[0]['recipe']}`, "
        f"{int(rows[0]['sentences']):,} sentences, sources and references in "
        f"the same form; `{rows[0]['bleu_signature']}`. ± is the 95 % interval "
        "over the seeds, and the share is that of the BLEU of the test set as "
        "it is.",
    ]


def _line(kind, rows):
    updates, case = kind
    values = {
        form: {r["seed"]: float(r["bleu"]) for r in rows if r["form"] == form}
        for form in _FORMS
    }
    ordinary = values["ordinary"]
    cells = []
    for form, of_seeds in values.items():
        found = seed_statistics(list(of_seeds.values()))
        cell = with_interval(found.mean, found.interval)
        if form != "ordinary":
            share = sum(of_seeds.values()) / sum(map(ordinary.get, of_seeds))
            cell = f"{cell} ({share:.1%})"
        cells.append(cell.replace("%", " %"))
    tokens = count(rows[0]["batch_tokens"])
    return [
        f"{updates:,}",
        f"`{case}`",
        str(len(ordinary)),
        tokens,
        *cells,
    ]
