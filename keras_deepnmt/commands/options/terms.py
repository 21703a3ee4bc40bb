"""`--terms`: translations that the terms of a list are to have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from keras_deepnmt.commands.options.changed_lines import (
    check_lines_can_change,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.data.terms import TermList, check_has_term_marks

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def add_terms(parser: VerbParser) -> None:
    """Adds `--terms`."""
    parser.add_argument(
        "--terms",
        metavar="FILE",
        help="Text file of lines with a source term, a tab and the translation "
        "that it is to have, for models that were trained with the modifier "
        "`terms`. Default: none.",
    )


def windows_with_terms(
    options: Namespace,
    translator: "Translator",
    windows: Iterator[list[str | None]],
    has_markup: bool,
) -> Iterator[list[str | None]]:
    """Marks the terms of each line that have a translation in the list.

    `None` stands for a line that is left out, and stays. `has_markup` says
    whether the input has markup that is kept in any case.
    """
    if options.terms is None:
        return windows
    check_lines_can_change("--terms", options, has_markup)
    check_has_term_marks(translator.source_tokenizer, "--terms")
    terms = TermList(options.terms)
    return ([text and terms.mark(text) for text in texts] for texts in windows)
