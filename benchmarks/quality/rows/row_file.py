"""The CSV file of the table, to which several processes add rows."""

from pathlib import Path

from benchmarks.quality.rows.row_folder import (
    read_texts,
    row_directory,
    row_key,
)
from benchmarks.quality.rows.significance import paired_bootstrap
from benchmarks.shared.result_rows import append_row, read_rows, write_rows
from keras_deepnmt.files import file_lock, lines_sha256


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


def compare_with_plain(file: Path, folder: Path) -> None:
    """Tests each row against its plain model's row of the same seed.

    The plain model's recipe must be the version that was there when the row was
    made. Rows get the columns of the test as soon as there is a row of the
    plain model and `folder` has the translations of both. They are tested again
    when the plain model was trained anew.
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
        result = _test(row, plain, folder)
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


def _test(row, plain, folder):
    texts = _texts(row, folder), _texts(plain, folder)
    if None in texts or texts[0][1] != texts[1][1]:
        return None
    difference, p_value = paired_bootstrap(
        texts[0][0],
        texts[1][0],
        texts[0][1],
        row["tokenize"],
        row["lowercase"] == "True",
    )
    return {
        "bleu_difference": f"{difference:+.2f}",
        "p_value": f"{p_value:.4f}",
    }


def _texts(row, folder):
    """Translations and references of a row; `None` if they are not here."""
    directory = row_directory(
        folder, row["recipe"], row["seed"], row["recipe_sha256"]
    )
    texts = read_texts(directory)
    if texts is None:
        return None
    is_same = lines_sha256(texts[0])[:12] == row["translations_sha256"]
    return texts if is_same else None
