"""The counts that BLEU sums over the sentences of a row, beside the CSV file.

The counts are enough for paired tests with rows that are added later, on
machines that do not have the translations. They contain no text.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.files import atomic_file

_ORDERS = (1, 2, 3, 4)
_COLUMNS = (
    *(f"matches_{order}" for order in _ORDERS),
    "length",
    "reference_length",
)


def count_sentences(
    translations: Sequence[str],
    references: Sequence[str],
    tokenize: str,
    lowercase: bool,
) -> np.ndarray:
    """Returns the counts of `MetricCounts`: int array `(sentences, counts)`."""
    counts = MetricCounts("bleu", tokenize, lowercase)
    rows = [
        counts.of_texts([text], reference)[0]
        for text, reference in zip(translations, references, strict=True)
    ]
    return np.array(rows, "int64")


def counts_file(table: Path, row: dict[str, str]) -> Path:
    """Returns the file of the counts of a row of a table.

    Its name holds the hash of the translations that were counted.
    """
    name = f"{row['recipe']}.{row['translations_sha256']}.csv"
    return table.parent / "sentence_counts" / name


def write_counts(file: Path, counts: np.ndarray) -> None:
    """Writes counts without the numbers of n-grams, which lengths determine."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(_COLUMNS)
            writer.writerows(np.delete(counts, range(4, 8), axis=1).tolist())


def read_counts(file: Path) -> np.ndarray | None:
    """Reads counts; `None` if there is no such file."""
    if not file.is_file():
        return None
    counts = np.loadtxt(file, "int64", delimiter=",", skiprows=1, ndmin=2)
    lengths = counts[:, 4]
    # A sentence of 5 words has 5 words, 4 pairs of words, and so on.
    totals = [np.maximum(lengths - order + 1, 0) for order in _ORDERS]
    return np.insert(counts, [4] * len(_ORDERS), np.stack(totals, 1), axis=1)
