"""Corrections of annotated sentences, by runs or from files."""

from collections.abc import Callable, Sequence
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import AnnotatedSentence
from keras_deepnmt.runs.scores.test_translations import read_lines
from keras_deepnmt.translator import Translator


def correct_by_runs(
    run_dirs: Sequence[str],
    gold: Sequence[AnnotatedSentence],
    on_progress: Callable[[int], None] | None = None,
    **options: Any,
) -> dict[str, list[str]]:
    """Corrects the sentences of an M2 file with several runs.

    Args:
        run_dirs: folders of runs.
        gold: the sentences, from `evaluation.read_m2`.
        on_progress: called with the number of sentences just corrected.
        **options: arguments of `Translator.load`.

    Returns:
        The corrected sentences of each run, tokenized as the file.

    Raises:
        UserError: if a run cannot be loaded.
    """
    sources = [" ".join(sentence.words) for sentence in gold]
    return {
        run_dir: Translator.load(run_dir, **options).translate(
            sources, on_progress=on_progress
        )
        for run_dir in run_dirs
    }


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
