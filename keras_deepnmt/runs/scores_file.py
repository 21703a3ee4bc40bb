"""The file `scores.json` of a run folder."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from keras_deepnmt.files import file_lock, lines_sha256, write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.recipes.schema import DecodingRecipe

# Raised where the file cannot be written; the second by file systems that have
# no locks.
NOT_WRITTEN = (OSError, NotImplementedError)

_REMEDY = (
    "Rename or delete it; `deepnmt evaluate` makes the scores of a test set "
    "again."
)


class _TestSet(BaseModel, extra="allow"):
    name: str
    sentences: int


class _Score(BaseModel, extra="allow"):
    value: float
    signature: str
    interval: float | None = None


class _Example(BaseModel, extra="allow"):
    source: str
    translation: str
    reference: str


class _Decoding(BaseModel, extra="allow"):
    num_beams: int = 1
    length_penalty: float = 0.0


class _Row(BaseModel, extra="allow"):
    test_set: _TestSet
    scores: dict[str, _Score]
    decoding: _Decoding
    evaluation: dict[str, Any]
    weights_sha256: str = ""
    examples: list[_Example] = []


class _Scores(BaseModel, extra="allow"):
    """The values of `scores.json` that are read, and their types."""

    evaluations: list[_Row]


def add_scores(file: Path, row: dict[str, Any]) -> None:
    """Adds a row that `evaluate` returned to `scores.json`.

    A row of the same test set, options, checkpoint and given text is replaced.
    No row is lost if several processes add rows at the same time.
    """
    with file_lock(file):
        rows = read_scores(file)
        rows = [r for r in rows if _setting(r) != _setting(row)]
        write_json(file, {"evaluations": [*rows, row]})


def why_unwritable(file: Path) -> str | None:
    """Returns why `add_scores` would fail, `None` if it would not.

    Example:
    >>> why_unwritable(Path("."))
    'it is a folder'
    """
    if file.is_dir():
        return "it is a folder"
    try:
        with file_lock(file):
            return None
    except NOT_WRITTEN as error:
        return str(getattr(error, "strerror", None) or error)


def read_scores(file: Path) -> list[dict[str, Any]]:
    """Reads the rows of `scores.json`, none if it does not exist."""
    if not file.is_file():
        return []
    return read_json(file, _Scores, _REMEDY)["evaluations"]


def _setting(row):
    return (
        row["test_set"],
        with_defaults(row["decoding"]),
        row["evaluation"],
        row.get("checkpoint"),
        row.get("given"),
    )


def given_sha256(
    prefixes: Iterable[str] | None = None,
    constraints: Iterable[Iterable[str]] | None = None,
    max_lengths: Iterable[int] | None = None,
) -> dict[str, str]:
    """Identifies what was given for translations, by the hash of its lines.

    The arguments are as for `Translator.translate`. A line of `constraints` has
    the phrases of a sentence, separated by tabs; one of `max_lengths` is empty
    where the options decide. Returns the hashes by the names of the arguments
    that are not `None`, with `_sha256`.
    """
    lines = {
        "prefixes_sha256": prefixes,
        "constraints_sha256": constraints and map("\t".join, constraints),
        "max_lengths_sha256": max_lengths
        and (str(length or "") for length in max_lengths),
    }
    return {
        name: lines_sha256(list(texts))
        for name, texts in lines.items()
        if texts is not None
    }


def with_defaults(decoding: dict[str, Any]) -> dict[str, Any]:
    """Adds the defaults of search options that a row does not have."""
    # A row written before an option existed was made with its default.
    return asdict(DecodingRecipe()) | decoding
