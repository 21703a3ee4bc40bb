"""`--context`: the lines before each line help to translate it."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeInt

from keras_deepnmt.commands.options.changed_lines import (
    check_lines_can_change,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.data.context import ContextWindow, mark_id
from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_logger = logging.getLogger(__name__)


def add_context(parser: VerbParser) -> None:
    """Adds `--context`."""
    parser.add_argument(
        "--context",
        type=NonNegativeInt,
        metavar="N",
        help="Number of lines before each line that the model reads with it, "
        "for models that were trained with `data.context`, and at most as many "
        "as in training. An empty line ends a document. Default: 0, each line "
        "is translated by itself.",
    )


def windows_in_context(
    options: Namespace,
    translator: "Translator",
    windows: Iterator[list[str | None]],
    is_document: bool,
) -> Iterator[list[str]]:
    """Puts each line in the context that is asked for.

    `None` stands for a line that is left out: it becomes empty, and the
    document goes on after it. `is_document` says that the input is no plain
    text: `DocumentInput` refuses a context.
    """
    learned = translator.context
    if not options.context:
        if learned and options.context is None:
            advice = (
                f"Give --context {learned} if the lines are sentences of "
                "documents, in order, or --context 0."
            )
            if is_document:
                advice = "Give the texts as lines, or --context 0."
            _logger.warning(
                "The model was trained with `data.context`: %d, and here each "
                "line is translated by itself. %s",
                learned,
                advice,
            )
        return ([text or "" for text in texts] for texts in windows)
    check_lines_can_change("--context", options, has_markup=False)
    if mark_id(translator.source_tokenizer) is None:
        raise UserError(
            "--context needs a model that was trained with `data.context`. "
            "Received: one whose source tokenizer has no symbol "
            f"{CONTEXT_MARK}. Leave it out."
        )
    if learned is not None and options.context > learned:
        raise UserError(
            f"--context must be at most {learned}, as many sentences as the "
            "model was trained with (`data.context`). Received: "
            f"{options.context}. Give fewer."
        )
    window = ContextWindow(options.context, translator.training_tags)
    return (
        ["" if text is None else window.take(text) for text in texts]
        for texts in windows
    )
