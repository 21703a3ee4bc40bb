"""The options for an input that is a document, and what becomes of it."""

import io
import itertools
import logging
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.input_lines import is_text_file
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.document import (
    TEXT,
    WITH_MARKUP,
    Document,
    document_format,
    format_of_name,
)
from keras_deepnmt.data.compression import packed
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

_logger = logging.getLogger(__name__)

Format = Literal["text", "xliff", "tmx", "tsv", "jsonl"]
_BATCHES_PER_WINDOW = 64
_OF_TABLES = ("source_column", "target_column")
_OF_MARKUP = ("replace_targets",)
# What belongs to a line of plain text.
_REFUSED = (
    *("alignments", "prefixes", "constraints", "max_lengths"),
    "nbest_format",
)


def add_document(parser: VerbParser) -> None:
    """Adds the options for documents."""
    parser.add_argument(
        "--input-format",
        type=Format,
        metavar="FORMAT",
        help="Format of --input: text, xliff, tmx, tsv or jsonl. The output "
        "has the same. Default: what the file begins with (XLIFF, TMX), or "
        "its name says (.tsv, .jsonl), and otherwise text.",
    )
    parser.add_argument(
        "--source-column",
        metavar="NAME",
        help="Name of the column to translate, in TSV (its first line has the "
        "names) and JSON Lines (a key, or keys with dots between them).",
    )
    parser.add_argument(
        "--target-column",
        metavar="NAME",
        help="Name of the column that is added for the translations. Default: "
        "translation.",
    )
    parser.add_argument(
        "--target-language",
        metavar="CODE",
        help="Code of the language to translate into, such as en, of a model "
        "that has learned several, in place of --tag; in XLIFF and TMX, also "
        "that of the translations. Default: that of the run's recipe, or of "
        "the file.",
    )
    parser.add_argument(
        "--replace-targets",
        action="store_true",
        help="In XLIFF and TMX, also translate what has a translation, unless "
        "it is approved or final. Default: it is left as it is.",
    )


class DocumentInput:
    """A document of `--input` that is translated.

    All of it is read here, so that damage is reported before anything is
    written. `has_markup` says whether its markup is kept in any case, and
    `lines` has for each of its texts the number of its line.
    """

    def __init__(self, options: Namespace, format: str):
        self.has_markup = format in WITH_MARKUP
        _refuse_options(options, format)
        languages: tuple[str | None, str | None] = None, None
        if self.has_markup:
            languages = _languages(options)
        self._document = Document(
            options.input,
            Asked(
                *languages,
                options.source_column,
                options.target_column,
                options.replace_targets,
            ),
            format,
        )
        self._output = options.output
        # Says now that a package for its compression is missing.
        with packed(io.BytesIO(), options.output or ""):
            pass
        # All of it is read before anything is written.
        self.lines = array("Q", (t.line for t in self._document.texts()))
        self._left = dict(self._document.left)

    @classmethod
    def of(cls, options: Namespace) -> "DocumentInput | None":
        """Returns the document of `--input`; `None` of plain text."""
        format = _format(options)
        if format == TEXT:
            for name in (*_OF_TABLES, *_OF_MARKUP):
                if options[name]:
                    kind = "TSV or JSON Lines"
                    if name in _OF_MARKUP:
                        kind = "XLIFF or TMX"
                    raise UserError(
                        f"{_option(name)} needs an --input that is {kind}."
                    )
            return None
        return cls(options, format)

    def windows(self, batch_size: int) -> Iterator[list[str]]:
        """Yields the texts, 64 batches of them at a time."""
        texts = (text.text for text in self._document.texts())
        size = _BATCHES_PER_WINDOW * batch_size
        while window := list(itertools.islice(texts, size)):
            yield window

    def write(self, lines: Path, output: BinaryIO) -> None:
        """Writes the document, given a file with a translation in each line."""
        with (
            open(lines, encoding="utf-8", newline="\n") as translations,
            packed(output, self._output or "") as content,
        ):
            self._document.write(
                (line.removesuffix("\n") for line in translations), content
            )
        self._say()

    def finish(self, part: Path, file: Path) -> None:
        """Writes the document to a file as a whole."""
        with atomic_file(file) as temporary, open(temporary, "wb") as output:
            self.write(part, output)

    def _say(self):
        left = ", ".join(
            f"{count:,} {reason}" for reason, count in self._left.items()
        )
        _logger.info(
            "%s: %s texts are translated%s.",
            self._document.path,
            f"{len(self.lines):,}",
            f"; left as they are: {left}" if left else "",
        )


def _format(options):
    if options.input in (None, "-"):
        if options.input_format not in (None, TEXT):
            raise UserError(
                f"--input-format {options.input_format} needs an --input FILE, "
                "which is read several times."
            )
        return TEXT
    if options.input_format is not None:
        return options.input_format
    path = Path(options.input)
    if is_text_file(options.input):
        return document_format(LineReader(path))
    # An empty file may be plain text; a pipe has no name.
    return format_of_name(path) if path.is_file() else TEXT


def _refuse_options(options, format):
    for name in _REFUSED:
        if options[name] is not None:
            raise UserError(
                f"{_option(name)} needs plain text with a sentence in each "
                f"line. Received: {options.input}, which is {format}."
            )
    if options.num_hypotheses > 1:
        raise UserError(
            "--num-hypotheses must be 1 for a document, which has one "
            f"translation of each text. Received: {options.input}, which is "
            f"{format}."
        )
    if options.context:
        raise UserError(
            "--context needs plain text, where an empty line ends a document. "
            f"Received: {options.input}, which is {format}. Leave it out, or "
            "give the texts as lines."
        )
    if options.errors != "strict":
        raise UserError(
            "--errors is for plain text: a document that is not as its format "
            "says is refused."
        )


def _languages(options):
    """The languages that are asked for, or else those of the recipe."""
    import_backend()  # which reading a run imports anyway, with its messages
    given = options.source_language, options.target_language
    known = languages_of_run(options.runs[0], options.target_language)
    return tuple(one or other for one, other in zip(given, known, strict=True))


def languages_of_run(
    run: str, target: str | None = None
) -> tuple[str | None, str | None]:
    """Returns the languages of a run, if its recipe names them.

    Of a run with several directions they are those of the one into a language.
    """
    from keras_deepnmt.data.directions import Directions
    from keras_deepnmt.runs.run_folder import RunFolder

    folder = RunFolder.find(run)
    data = folder.recipe().data if folder.recipe_file.is_file() else None
    if data is None:
        return None, None
    directions = Directions(data.directions())
    if target in directions.targets:
        return directions.source_of(target), target
    return data.languages


def _option(name):
    return f"--{name.replace('_', '-')}"
