"""`deepnmt translate`: translates lines as they are read."""

import contextlib
import itertools
from functools import partial
from pathlib import Path
from typing import Literal

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.compilation import (
    LazilyCompiled,
    add_compile,
)
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    add_ensemble,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.input_lines import (
    decode_windows,
    input_name,
    is_typed,
    read_windows,
)
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.commands.terminal.output_file import add_output, open_output
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt translate runs/demo < test.en > test.de
deepnmt translate runs/demo --input test.en --output test.de
deepnmt translate runs/first runs/second < test.en > test.de
echo "Ein Hund schläft." | deepnmt translate runs/demo --num-hypotheses 3
"""
CONTINUE = "The lines printed so far are complete."
_MAXIMUM_LENGTH = (
    "the translation was cut at the maximum length, which `--max-length-ratio` "
    "and `--max-extra-tokens` change."
)


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt translate`."""
    add_ensemble(parser)
    parser.add_argument(
        "--input",
        "-i",
        type=str,
        metavar="FILE",
        help="Text file to translate, one sentence per line, plain or gzipped. "
        "Default: standard input.",
    )
    add_output(parser)
    parser.add_argument(
        "--errors",
        type=Literal["strict", "replace", "skip"],
        default="strict",
        help="What to do with a line that is not UTF-8. strict: stop there, "
        "after the lines before it; replace: translate it with U+FFFD for each "
        "invalid byte; skip: write an empty line.",
    )
    add_decoding_options(parser)
    add_checkpoint(parser)
    add_compile(parser)
    parser.add_argument(
        "--num-hypotheses",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of translations to print per sentence. If N is 2 or more, "
        "each is a line `number ||| text ||| score`, where number is the line "
        "number of the sentence, from 1.",
    )
    parser.add_argument(
        "--prefixes",
        type=str,
        metavar="FILE",
        help="Text file with what each translation must begin with, one line "
        "for each sentence; an empty line leaves the beginning free.",
    )
    parser.add_argument(
        "--mbr",
        type=Literal["chrf", "bleu"],
        metavar="chrf|bleu",
        help="Print the translation that agrees most with the others, in chrF "
        "or BLEU, of the --num-beams that were drawn (--sampling) or found "
        "(minimum Bayes risk). Default: print the one with the best score.",
    )
    parser.add_argument(
        "--alignments",
        type=str,
        metavar="FILE",
        help="File for the aligned words of each sentence and its first "
        "translation, such as `0-0 1-2`, source word first, from 0. They come "
        "from the attention of a decoder block. Default: none is written.",
    )
    parser.add_argument(
        "--alignment-layer",
        type=PositiveInt,
        metavar="N",
        help="Decoder block of --alignments, from 1. Default: the last but "
        "one.",
    )


def run(options: Namespace) -> None:
    """Translates the input until it ends."""
    if options.num_hypotheses > (options.num_beams or options.num_hypotheses):
        raise UserError(
            "`--num-hypotheses` must not exceed `--num-beams`. Received: "
            f"{options.num_hypotheses} and {options.num_beams}"
        )
    if options.mbr and options.num_hypotheses > 1:
        raise UserError("--mbr prints one translation: no --num-hypotheses.")
    if options.alignments and len(options.runs) > 1:
        raise UserError("--alignments needs a single run.")
    name = input_name(options.input)
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(open_output(options.output))
        warnings = stack.enter_context(LineWarnings(name))
        alignments = None
        if options.alignments is not None:
            file = stack.enter_context(open_output(options.alignments))
            alignments = partial(_write_alignments, file, options)
        prefixes = _Prefixes(options.prefixes)
        translator = load_translator(options)
        windows = decode_windows(
            read_windows(options.input, translator.batch_size),
            name,
            options.errors,
            warnings,
        )
        quiet = options.quiet or output.isatty()
        with progress_bar("sentences", quiet=quiet) as advance:
            _translate(
                LazilyCompiled(translator, options.compile),
                windows,
                output,
                warnings,
                advance,
                _Choice(options.num_hypotheses, options.mbr),
                alignments,
                prefixes,
            )
        prefixes.check_end()


class _Prefixes:
    """The lines of `--prefixes`, read as the sentences are."""

    def __init__(self, file):
        self._file = file
        self._lines = iter(()) if file is None else iter(LineReader(file))
        self._number = 0

    def take(self, number):
        """Returns the next prefixes; `None` without a file."""
        if self._file is None:
            return None
        lines = [
            decode_line(line, Path(self._file), place)
            for place, line in enumerate(
                itertools.islice(self._lines, number), start=self._number + 1
            )
        ]
        self._number += len(lines)
        if len(lines) < number:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"{self._number} lines, fewer than there are sentences."
            )
        return lines

    def check_end(self):
        """Refuses lines that are left after the last sentence."""
        if next(self._lines, None) is not None:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"more than the {self._number} lines of the input."
            )


class _Choice:
    """Which of the hypotheses of a sentence are printed."""

    def __init__(self, num_hypotheses, utility):
        self._num_hypotheses = num_hypotheses
        self._utility = utility

    def num_searched(self, translator):
        """Returns how many hypotheses of a sentence are needed."""
        return translator.num_beams if self._utility else self._num_hypotheses

    def hypotheses(self, found, is_sampled):
        """Returns those of a sentence to print, best first."""
        if not self._utility:
            return found
        from keras_deepnmt.evaluation import minimum_bayes_risk

        log_probs = None if is_sampled else [h.log_prob for h in found]
        texts = [h.text for h in found]
        return [found[minimum_bayes_risk(texts, log_probs, self._utility)]]

    def lines(self, nbest, first):
        """Yields the lines to print, without line ends."""
        if self._num_hypotheses == 1:
            yield from (hypotheses[0].text for hypotheses in nbest)
        else:
            yield from _numbered(nbest, first)


def _translate(
    translators,
    windows,
    output,
    warnings,
    advance,
    choice,
    write_alignments,
    prefixes,
):
    number = 0
    for texts in windows:
        translator = translators.choose(texts)
        translator.on_truncated = partial(
            _warn_truncated, warnings, number + 1, translator.max_source_length
        )
        num_searched = choice.num_searched(translator)
        nbest = [
            choice.hypotheses(found, translator.sampling)
            for found in translator.translate_nbest(
                texts, num_searched, advance, prefixes.take(len(texts))
            )
        ]
        for line, hypotheses in enumerate(nbest, start=number + 1):
            if hypotheses[0].truncated:
                warnings.add(line, _MAXIMUM_LENGTH)
        lines = choice.lines(nbest, number + 1)
        output.writelines(f"{line}\n" for line in lines)
        output.flush()
        if write_alignments is not None:
            first = [hypotheses[0].text for hypotheses in nbest]
            write_alignments(translator, texts, first)
        number += len(texts)
        if is_typed():
            warnings.print()  # at once, to the person who typed the line


def _write_alignments(file, options, translator, sources, targets):
    from keras_deepnmt.analysis import align_words
    from keras_deepnmt.evaluation import format_alignment

    try:
        found = align_words(
            translator, sources, targets, options.alignment_layer
        )
    except ValueError as error:
        raise UserError(
            str(error).replace("`layer`", "--alignment-layer")
        ) from error
    file.writelines(f"{format_alignment(links)}\n" for links in found)


def _warn_truncated(warnings, first, max_length, places):
    for place in places:
        warnings.add(
            first + place,
            f"longer than {max_length - 1} tokens, the model's position range; "
            "the rest was not translated.",
        )


def _numbered(nbest, first):
    for number, hypotheses in enumerate(nbest, start=first):
        for hypothesis in hypotheses:
            score = f"{hypothesis.score:.6f}"
            yield f"{number} ||| {hypothesis.text} ||| {score}"
