"""The file `scores.json` of a run folder."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import refused_values
from keras_deepnmt.files import file_lock, read_json, write_json
from keras_deepnmt.recipes.schema import DecodingRecipe


def add_scores(file: Path, row: dict[str, Any]) -> None:
    """Adds a row that `evaluate` returned to `scores.json`.

    A row of the same test set, options and checkpoint is replaced. No row is
    lost if several processes add rows at the same time.
    """
    with file_lock(file):
        rows = read_scores(file)
        rows = [r for r in rows if _setting(r) != _setting(row)]
        write_json(file, {"evaluations": [*rows, row]})


def read_scores(file: Path) -> list[dict[str, Any]]:
    """Reads the rows of `scores.json`, none if it does not exist.

    Raises:
        UserError: if the file is damaged.
    """
    if not file.is_file():
        return []
    content = read_json(file)
    with refused_values(f"{file}: not a file of scores; rename or delete it"):
        rows = content["evaluations"]
        for row in rows:
            _setting(row)
    return rows


def _setting(row):
    return (
        row["test_set"],
        with_defaults(row["decoding"]),
        row["evaluation"],
        row.get("checkpoint"),
    )


def with_defaults(decoding: dict[str, Any]) -> dict[str, Any]:
    """Adds the defaults of search options that a row does not have."""
    # A row written before an option existed was made with its default.
    return asdict(DecodingRecipe()) | decoding
