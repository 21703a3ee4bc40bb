"""The options for lines with markup, or with several sentences."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import option_name
from keras_deepnmt.commands.options.document import (
    DocumentInput,
    languages_of_run,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.translator import Hypothesis, Translator

# Options that count the lines or the words of what the model reads.
_REFUSED = {
    "keep_markup": ("alignments",),
    "split_sentences": (
        "alignments",
        "prefixes",
        "constraints",
        "max_lengths",
    ),
}


def add_segments(parser: VerbParser) -> None:
    """Adds `--keep-markup`, `--split-sentences` and `--source-language`."""
    parser.add_argument(
        "--keep-markup",
        action="store_true",
        help="Keep tags, placeholders such as {name} and %%s, addresses, names "
        "of files and long numbers: each line of the output has those of its "
        "line in the input. In XLIFF and TMX they are kept in any case.",
    )
    parser.add_argument(
        "--split-sentences",
        action="store_true",
        help="Translate each sentence of a line by itself, and join them by "
        "the white space between them. Needs `pip install "
        "keras_deepnmt[sentences]`.",
    )
    parser.add_argument(
        "--source-language",
        metavar="CODE",
        help="Code of the language of the input, such as de, whose sentences "
        "--split-sentences finds, and of the texts of XLIFF and TMX. Default: "
        "that of the run's recipe.",
    )


class SegmentOptions:
    """What these options ask for; refuses those that cannot be used together.

    `document` is the input, if it is no plain text.
    """

    def __init__(
        self, options: Namespace, document: DocumentInput | None = None
    ):
        has_markup = document is not None and document.has_markup
        for name, others in _REFUSED.items():
            if not options[name]:
                continue
            for other in others:
                if options[other] is not None:
                    raise UserError(
                        f"{option_name(other)} needs one sentence in each "
                        "line, as the model reads it: no "
                        f"{option_name(name)}."
                    )
            if options.num_hypotheses > 1 or options.nbest_format:
                other = (
                    "num_hypotheses"
                    if options.num_hypotheses > 1
                    else ("nbest_format")
                )
                raise UserError(
                    f"{option_name(name)} prints one translation of each "
                    f"line: no {option_name(other)}."
                )
        if options.source_language and not (
            options.split_sentences or has_markup
        ):
            raise UserError(
                "--source-language needs --split-sentences, or an --input that "
                "is XLIFF or TMX."
            )
        self._keeps_markup = options.keep_markup or has_markup
        self._options = options
        self._splitter = None

    def load_rules(self) -> None:
        """Loads the rules that split sentences, after the backend."""
        if self._options.split_sentences:
            from keras_deepnmt.documents import SentenceSplitter

            self._splitter = SentenceSplitter(_language(self._options))

    def take(
        self,
        translator: "Translator",
        texts: list[str],
        given: dict[str, Any],
        first: int,
    ) -> "WholeLines":
        """Returns what the translator reads of lines, and the way back.

        `first` is the number of the first line.
        """
        options = self._options
        if not self._keeps_markup and not options.split_sentences:
            return WholeLines(texts, given, first)
        from keras_deepnmt.documents import Segments

        return _SplitLines(
            Segments(
                translator,
                texts,
                self._keeps_markup,
                self._splitter,
                options.alignment_layer,
                first,
                **given,
            ),
            first,
        )


class WholeLines:
    """Lines that the translator reads as they are.

    Attributes:
        reads: What the translator reads.
        given: What is asked of its translations.
    """

    def __init__(self, reads: list[str], given: dict[str, Any], first: int):
        self.reads = reads
        self.given = given
        self._first = first

    def number(self, place: int) -> int:
        """Returns the number of the line of one of `reads`."""
        return self._first + place

    def finish(
        self,
        nbest: list[list["Hypothesis"]],
        revise: Callable[[list[str], list["Hypothesis"]], list["Hypothesis"]],
    ) -> tuple[list[list["Hypothesis"]], list[list["Hypothesis"]]]:
        """Returns for each line the translations to print, and what to check.

        `nbest` has translations of `reads`. `revise` changes those of sentences
        that have to be translated again.
        """
        return nbest, [found[:1] for found in nbest]


class _SplitLines(WholeLines):
    def __init__(self, segments, first):
        super().__init__(segments.reads, segments.given, first)
        self._segments = segments
        self._lines = segments.segment_numbers

    def number(self, place):
        return self._first + self._lines[place]

    def finish(self, nbest, revise):
        from keras_deepnmt.translator import Hypothesis

        translated = self._segments.finish([one[0] for one in nbest], revise)
        shown = [
            [Hypothesis(segment.text, 0.0, 0.0, ())] for segment in translated
        ]
        return shown, [list(segment.hypotheses) for segment in translated]


def _language(options):
    if options.source_language:
        return options.source_language
    source, _ = languages_of_run(options.runs[0], options.target_language)
    if source:
        return source
    raise UserError(
        "--split-sentences needs the language of the input, which the recipe "
        f"of {options.runs[0]} does not name. Give --source-language CODE, "
        "such as de."
    )
