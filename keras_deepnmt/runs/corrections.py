"""Corrections of annotated sentences, read from files."""

from collections.abc import Sequence

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import AnnotatedSentence
from keras_deepnmt.runs.test_translations import read_lines


def read_corrections(
    files: Sequence[str], gold: Sequence[AnnotatedSentence], gold_file: str
) -> dict[str, list[str]]:
    """Reads corrected sentences from files, one file for each system.

    Raises:
        UserError: if a file has another number of lines than `gold_file` has
            sentences.
    """
    systems = {file: read_lines(file) for file in files}
    for file, lines in systems.items():
        if len(lines) != len(gold):
            raise UserError(
                f"{file} must have a line for each sentence of {gold_file}. "
                f"Received: {len(lines)} lines and {len(gold)} sentences."
            )
    return systems
