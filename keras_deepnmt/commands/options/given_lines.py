"""The options for files that have a line for each sentence to translate."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError
from keras_deepnmt.validation import LARGEST

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def add_given_lines(parser: VerbParser) -> None:
    """Adds `--prefixes`, `--constraints` and `--max-lengths`."""
    parser.add_argument(
        "--prefixes",
        type=str,
        metavar="FILE",
        help="Text file with what each translation must begin with, one line "
        "for each sentence; an empty line leaves the beginning free.",
    )
    parser.add_argument(
        "--constraints",
        type=str,
        metavar="FILE",
        help="Text file with phrases that each translation must contain, one "
        "line for each sentence, separated by tabs; an empty line requires "
        "none.",
    )
    parser.add_argument(
        "--max-lengths",
        type=str,
        metavar="FILE",
        help="Text file with the maximum number of tokens of each translation, "
        "its end token included, one line for each sentence. It replaces what "
        "--max-length-ratio and --max-extra-tokens allow; an empty line does "
        "not.",
    )


class GivenLines:
    """What the options' files ask of each translation.

    The lines are read as the sentences are.

    Args:
        options: of the command line.
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

        Returns:
            Lists by the names of the arguments of `Translator.translate`.

        Raises:
            UserError: if a file has not as many lines, a line is wrong, or a
                prefix is too long for the model of the translator.
        """
        taken = {
            name: reader.take(number) for name, reader in self._readers.items()
        }
        if "prefixes" in taken:
            # The translator could not name the file and its line.
            self._readers["prefixes"].check_room(taken["prefixes"], translator)
        return taken

    def check_end(self) -> None:
        """Refuses lines that are left after the last sentence.

        Raises:
            UserError: if there are any.
        """
        for reader in self._readers.values():
            reader.check_end()


class _Lines:
    """The lines of a file, plain or gzipped, each converted by a function."""

    def __init__(self, file, convert=str):
        self._file = file
        self._convert = convert
        self._lines = iter(()) if file is None else iter(LineReader(file))
        self._number = 0

    def take(self, number):
        values = []
        for line in itertools.islice(self._lines, number):
            self._number += 1
            text = decode_line(line, Path(self._file), self._number)
            try:
                values.append(self._convert(text))
            except ValueError as error:
                raise UserError(
                    f"{self._file}, line {self._number}: {error}. "
                    f"Received: {text!r}"
                ) from error
        if len(values) < number:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"{self._number} lines, fewer than there are sentences."
            )
        return values

    def check_room(self, texts, translator):
        """Refuses a text, of those taken last, that is too long a prefix."""
        from keras_deepnmt.translator.requests import label_rows

        label_rows(
            translator.target_tokenizer,
            texts,
            translator.model.max_length,
            self._file,
            self._number - len(texts) + 1,
        )

    def check_end(self):
        if next(self._lines, None) is not None:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"more than the {self._number} lines of the input."
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
