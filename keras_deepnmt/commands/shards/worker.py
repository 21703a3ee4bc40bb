"""Translates blocks of lines, in the process of a worker."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.own_code import given_code
from keras_deepnmt.commands.shards.ctranslate2_model import CTranslate2Model
from keras_deepnmt.commands.shards.files import TSV
from keras_deepnmt.commands.shards.run_model import RunModel
from keras_deepnmt.commands.terminal.line_faults import (
    NOT_UTF8,
    TRANSLATION_CUT,
    source_cut,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import as_cell, as_line


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
    was translated before. `environment` are variables of the environment of the
    command. `model` is the hash of the model that `open_model` has given the
    command; another model is refused.
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
        self._model = open_model(self._options)
        if self._model.sha256 != model:
            raise UserError(
                f"{self._options.run}: is another model on the machine "
                f"{platform.node()}. Copy the folder there again."
            )
        self._model.load()

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
        nbest, cut = self._model.translate(texts)
        faults += [
            (place, source_cut(self._model.max_source_length)) for place in cut
        ]
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
            return as_line(found[0].text)
        cells = [as_cell(text)]
        for number in range(self._options.num_hypotheses):
            has_one = number < len(found)
            cells.append(as_cell(found[number].text) if has_one else "")
            if self._options.score:
                score = f"{found[number].score:.6f}" if has_one else ""
                cells.append(score)
        return "\t".join(cells)


def column_names(num_hypotheses: int, score: bool) -> list[str]:
    """Names the columns of the lines with tabs."""
    names = ["text"]
    for number in range(1, num_hypotheses + 1):
        ending = f"_{number}" if number > 1 else ""
        names.append(f"translation{ending}")
        if score:
            names.append(f"score{ending}")
    return names


def open_model(options: Namespace) -> RunModel | CTranslate2Model:
    """Opens what translates, without loading it; needs the backend."""
    from keras_deepnmt.exchange.engine_folders import find_engine

    engine = find_engine(options.run)
    if engine is None:
        return RunModel(options)
    if engine.format == "ctranslate2":
        return CTranslate2Model(options)
    raise UserError(
        f"{options.run}: is a folder for {engine.name}, which translates no "
        "files. Give the run itself, or an export for CTranslate2."
    )
