"""The CSV file of the table, to which several processes add rows."""

from pathlib import Path

import numpy as np

from benchmarks.quality.rows.row_folder import row_key
from benchmarks.quality.rows.sentence_counts import counts_file, read_counts
from benchmarks.shared.result_rows import append_row, read_rows, write_rows
from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.evaluation.p_values import randomization_p_value
from keras_deepnmt.files import file_lock


def add_row(file: Path, row: dict) -> bool:
    """Adds a row to the file, unless it has one of this recipe and seed.

    Returns whether the row was added.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    text = {name: str(value) for name, value in row.items()}
    with file_lock(file):
        if row_key(text) in map(row_key, read_rows(file)):
            return False
        append_row(file, row)
    return True


def compare_with_plain(file: Path) -> None:
    """Tests each row against its plain model's row of the same seed.

    The plain model's recipe must be the version that was there when the row was
    made. Rows get the columns of the test as soon as there is a row of the
    plain model and the counts of both, see `sentence_counts`. They are tested
    again when the plain model was trained anew.
    """
    rows = read_rows(file)
    found = {}
    for row in rows:
        plain = _plain_row(row, rows)
        if plain is None:
            continue
        sha256 = plain["translations_sha256"]
        if row["plain_translations_sha256"] == sha256:
            continue
        result = _test(row, plain, file)
        if result is not None:
            found[row_key(row)] = result | {"plain_translations_sha256": sha256}
    if found:
        with file_lock(file):
            rows = read_rows(file)
            rows = [row | found.get(row_key(row), {}) for row in rows]
            write_rows(file, rows)


def _plain_row(row, rows):
    """The row of the plain model with this seed, `None` without one."""
    plain_rows = [
        other
        for other in rows
        if other["preset"] == row["plain"]
        and other["corpus"] == row["corpus"]
        and other["recipe_sha256"] == row["plain_recipe_sha256"]
        and other["seed"] == row["seed"]
    ]
    return plain_rows[-1] if plain_rows else None


def _test(row, plain, file):
    """The columns of the test, `None` if counts of a row are missing."""
    counts, plain_counts = (
        read_counts(counts_file(file, of)) for of in (row, plain)
    )
    if counts is None or plain_counts is None:
        return None
    if not np.array_equal(counts[:, -1], plain_counts[:, -1]):
        # Other references: another test set.
        return None
    bleu = MetricCounts("bleu").scores
    own, of_plain = (
        bleu(of.sum(axis=0, keepdims=True)).item()
        for of in (counts, plain_counts)
    )
    return {
        "bleu_difference": f"{own - of_plain:+.2f}",
        "p_value": f"{randomization_p_value(counts, plain_counts, bleu):.4g}",
    }
