"""Translates blocks of lines, in the process of a worker."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.decoding import load_translator
from keras_deepnmt.commands.options.own_code import given_code
from keras_deepnmt.commands.shards.files import TSV
from keras_deepnmt.commands.terminal.line_faults import (
    NOT_UTF8,
    TRANSLATION_CUT,
    source_cut,
)
from keras_deepnmt.errors import UserError

_LINE_ENDS = re.compile(r"[\n\r]")
_CELL_ENDS = re.compile(r"[\t\n\r]")


@dataclass(frozen=True)
class TranslatedLines:
    """The lines to write for a block: one for each of its lines.

    Attributes:
        lines: the lines, without line ends.
        faults: what is wrong with some of them: the number of the line in the
            block, from 0, and the fault.
    """

    lines: list[str]
    faults: list[tuple[int, str]]


class BlockTranslator:
    """Loads a model, and translates blocks of lines with it.

    The result of a block depends on its lines and the options alone, whatever
    was translated before.

    Args:
        options: the options of `deepnmt translate-files`.
        environment: variables of the environment of the command.
        model: the hash that `open_model` has returned to the command.

    Raises:
        UserError: if the model is another one here.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        environment: Mapping[str, str],
        model: str,
    ):
        os.environ.update(environment)
        self._options = Namespace(**options)
        # As long as the process lives.
        self._code = given_code(self._options)
        self._code.__enter__()
        start_backend(self._options.cores_per_worker)
        _, found = open_model(self._options.run, self._options.checkpoint)
        if found != model:
            raise UserError(
                f"{self._options.run}: is another model on the machine "
                f"{platform.node()}. Copy the folder there again."
            )
        self._translator = load_translator(self._options)
        if self._options.compile is False:
            self._translator = self._translator.replaced(compiled=False)
        self._number = self._options.num_hypotheses
        self._state = self._translator.steady_search_state(self._number)

    def __call__(self, lines: Sequence[bytes]) -> TranslatedLines:
        """Translates the lines of a block."""
        faults: list[tuple[int, str]] = []
        texts = []
        for place, line in enumerate(lines):
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                texts.append("")
                faults.append((place, NOT_UTF8["skip"]))
        translator = self._translator
        translator.search_state = self._state
        translator.on_truncated = lambda places: faults.extend(
            (place, source_cut(translator.max_source_length))
            for place in places
        )
        nbest = translator.translate_nbest(texts, self._number)
        faults += [
            (place, TRANSLATION_CUT)
            for place, found in enumerate(nbest)
            if any(hypothesis.truncated for hypothesis in found)
        ]
        return TranslatedLines(
            list(map(self._line, texts, nbest)), sorted(faults)
        )

    def _line(self, text, found):
        if self._options.format != TSV:
            return _LINE_ENDS.sub(" ", found[0].text)
        cells = [_cell(text)]
        for number in range(self._number):
            has_one = number < len(found)
            cells.append(_cell(found[number].text) if has_one else "")
            if self._options.score:
                score = f"{found[number].score:.6f}" if has_one else ""
                cells.append(score)
        return "\t".join(cells)


def column_names(num_hypotheses: int, score: bool) -> list[str]:
    """Names the columns of the lines with tabs.

    Example:
    >>> column_names(2, True)
    ['text', 'translation', 'score', 'translation_2', 'score_2']
    """
    names = ["text"]
    for number in range(1, num_hypotheses + 1):
        ending = f"_{number}" if number > 1 else ""
        names.append(f"translation{ending}")
        if score:
            names.append(f"score{ending}")
    return names


def open_model(folder: str, checkpoint: str | None) -> tuple[Any, str]:
    """Reads a run, or a checkpoint of it, and the hash of its model.

    Raises:
        UserError: if there is no such run, or it is damaged.
    """
    from keras_deepnmt.files import lines_sha256
    from keras_deepnmt.runs.checkpoints import open_run

    run = open_run(folder, checkpoint)
    parts = (
        run.weights_sha256,
        run.source_tokenizer.sha256,
        run.target_tokenizer.sha256,
        str(run.summary.get("overrides")),
    )
    return run, lines_sha256(parts)


def _cell(text):
    return _CELL_ENDS.sub(" ", text)
