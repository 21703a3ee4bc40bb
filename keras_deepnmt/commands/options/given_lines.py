"""The options for files that have a line for each sentence to translate."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.data.compression import is_empty
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError
from keras_deepnmt.validation import LARGEST

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def add_given_lines(parser: VerbParser) -> None:
    """Adds `--prefixes`, `--constraints` and `--max-lengths`."""
    parser.add_argument(
        "--prefixes",
        metavar="FILE",
        help="Text file with what each translation must begin with, one line "
        "for each sentence; an empty line leaves the beginning free.",
    )
    parser.add_argument(
        "--constraints",
        metavar="FILE",
        help="Text file with phrases that each translation must contain, one "
        "line for each sentence, separated by tabs; an empty line requires "
        "none.",
    )
    parser.add_argument(
        "--max-lengths",
        metavar="FILE",
        help="Text file with the maximum number of tokens of each translation, "
        "its end token included, one line for each sentence. It replaces what "
        "--max-length-ratio and --max-extra-tokens allow; an empty line does "
        "not.",
    )


class GivenLines:
    """What the options' files ask of each translation.

    `take` reads the lines as the sentences are read, and `check_end` belongs
    after the last of them; or `read` reads all lines at once, and `check`
    belongs before the translation.
    """

    def __init__(self, options: Namespace):
        readers = {
            "prefixes": _Lines(options.prefixes),
            "constraints": _Lines(options.constraints, _phrases),
            "max_lengths": _Lines(options.max_lengths, _length),
        }
        self._readers = {
            name: reader
            for name, reader in readers.items()
            if options[name] is not None
        }

    def take(
        self, number: int, translator: "Translator"
    ) -> dict[str, list[Any]]:
        """Returns what the next lines ask of as many translations.

        They are lists by the names of the arguments of `Translator.translate`.
        """
        taken = {
            name: reader.take(number) for name, reader in self._readers.items()
        }
        if "prefixes" in taken:
            # The translator could not name the file and its line.
            self._readers["prefixes"].check_room(translator)
        return taken

    def check_end(self) -> None:
        """Refuses lines that are left after the last sentence."""
        for reader in self._readers.values():
            reader.check_end()

    def read(self) -> dict[str, list[Any]]:
        """Returns what all lines ask, in the same form as `take`."""
        return {name: reader.read() for name, reader in self._readers.items()}

    def check(self, translator: "Translator", sources: Sequence[str]) -> None:
        """Refuses lines that `read` returned, but that sentences cannot have.

        A file must have as many lines as there are sentences, and a prefix must
        not be too long for the model.
        """
        for name, reader in self._readers.items():
            reader.check_number(len(sources))
            if name == "prefixes":
                reader.check_room(translator)


class _Lines:
    """The lines of a file, which may be compressed, each converted."""

    def __init__(self, file, convert=str):
        self._file = file
        self._convert = convert
        has_lines = file is not None and not is_empty(file)
        self._lines = iter(LineReader(file)) if has_lines else iter(())
        self._number = 0
        self._values = []

    def take(self, number):
        self._convert_lines(itertools.islice(self._lines, number))
        if len(self._values) < number:
            raise self._too_few()
        return self._values

    def read(self):
        self._convert_lines(self._lines)
        return self._values

    def _convert_lines(self, lines):
        self._values = []
        for line in lines:
            self._number += 1
            text = decode_line(line, Path(self._file), self._number)
            try:
                self._values.append(self._convert(text))
            except ValueError as error:
                raise UserError(
                    f"{self._file}, line {self._number}: {error}. "
                    f"Received: {text!r}"
                ) from error

    def check_room(self, translator):
        """Refuses a text, of those read last, that is too long a prefix."""
        from keras_deepnmt.translator.requests import prefix_rows

        prefix_rows(
            translator.target_tokenizer,
            self._values,
            translator.model.max_length,
            self._file,
            self._number - len(self._values) + 1,
        )

    def check_number(self, number):
        if self._number < number:
            raise self._too_few()
        if self._number > number:
            raise self._too_many(number)

    def check_end(self):
        if next(self._lines, None) is not None:
            raise self._too_many(self._number)

    def _too_few(self):
        return UserError(
            f"{self._file}: must have a line for each sentence. Received: "
            f"{self._number} lines, fewer than there are sentences."
        )

    def _too_many(self, number):
        return UserError(
            f"{self._file}: must have a line for each sentence. Received: "
            f"more than the {number} lines of the input."
        )


def _phrases(line):
    """The phrases of a line; empty ones require nothing."""
    return line.split("\t")


def _length(line):
    """The number in a line, 0 of an empty one."""
    text = line.strip()
    if not text:
        return 0
    is_number = text.isascii() and text.isdecimal()
    if not is_number or not 1 <= int(text) <= LARGEST:
        raise ValueError(
            f"must be a number of at least 1, or empty, and at most {LARGEST:,}"
        )
    return int(text)
