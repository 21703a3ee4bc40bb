"""`deepnmt translate`: translates lines as they are read."""

import contextlib
import itertools
from functools import partial
from typing import Literal

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.compilation import (
    LazilyCompiled,
    add_compile,
)
from keras_deepnmt.commands.options.context import (
    add_context,
    windows_in_context,
)
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    add_ensemble,
    add_shortlist,
    add_tag,
    check_num_hypotheses,
    load_translator,
)
from keras_deepnmt.commands.options.document import (
    DocumentInput,
    add_document,
)
from keras_deepnmt.commands.options.given_lines import (
    GivenLines,
    add_given_lines,
)
from keras_deepnmt.commands.options.output_file import add_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.reranking import (
    RerankingRuns,
    add_rerankers,
    add_reranking_weights,
    is_reranked,
)
from keras_deepnmt.commands.options.resumption import (
    Resumption,
    add_restart,
)
from keras_deepnmt.commands.options.segments import (
    SegmentOptions,
    add_segments,
)
from keras_deepnmt.commands.options.terms import (
    add_terms,
    windows_with_terms,
)
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.input_lines import (
    count_lines,
    decode_windows,
    input_name,
    is_typed,
    read_windows,
)
from keras_deepnmt.commands.terminal.line_faults import (
    TRANSLATION_CUT,
    source_cut,
)
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.commands.terminal.nbest_lists import (
    DESCRIPTION,
    Format,
    nbest_lines,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import as_line

EXAMPLE = """
deepnmt translate runs/demo < test.en > test.de
deepnmt translate runs/demo --input test.en --output test.de
deepnmt translate runs/first runs/second < test.en > test.de
deepnmt translate runs/demo --input manual.xlf --output manual.de.xlf
echo "Ein Hund schläft." | deepnmt translate runs/demo --num-hypotheses 3
"""
CONTINUE = "The lines printed so far are complete."

# Why the translation lacks a phrase of `--constraints`, see `why_missed`.
_MISSED = {
    "empty": "the sentence is empty, and so is its translation: the phrases in "
    "`--constraints` were not used.",
    "unknown": "the translation lacks a phrase of `--constraints`: it has "
    "characters that the vocabulary lacks, and unknown tokens are forbidden "
    "(`--allow-unknown false`).",
    "room": "the translation lacks a phrase of `--constraints`, which has no "
    "room within the maximum length.",
    "contradiction": "the translation lacks a phrase of `--constraints`, which "
    "contradicts another option, the beginning or another phrase.",
}
_EMPTY = (
    "the sentence is empty, and so is its translation: the beginning in "
    "`--prefixes` was not used."
)


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt translate`."""
    add_ensemble(parser)
    parser.add_argument(
        "--input",
        "-i",
        metavar="FILE",
        help="Text file to translate, one sentence per line, or a document: "
        "XLIFF, TMX, TSV or JSON Lines; plain or compressed. Default: "
        "standard input.",
    )
    add_document(parser)
    add_output(parser)
    add_restart(parser)
    parser.add_argument(
        "--errors",
        type=Literal["strict", "replace", "skip"],
        default="strict",
        help="What to do with a line that is not UTF-8. strict: stop there; "
        "what was finished before it stays printed, or in OUTPUT.part; "
        "replace: translate it with U+FFFD for each invalid byte; skip: write "
        "an empty line.",
    )
    add_decoding_options(parser)
    add_checkpoint(parser)
    add_compile(parser)
    parser.add_argument(
        "--num-hypotheses",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Number of different translations to print per sentence, at most. "
        "If N is 2 or more, each is a line of --nbest-format.",
    )
    parser.add_argument(
        "--nbest-format",
        type=Format,
        metavar="plain|moses|json",
        help=f"Format of the lines of --num-hypotheses. {DESCRIPTION}. "
        "Default: plain, or with one hypothesis the translation alone.",
    )
    add_tag(parser)
    add_context(parser)
    add_terms(parser)
    add_given_lines(parser)
    add_segments(parser)
    add_shortlist(parser)
    parser.add_argument(
        "--mbr",
        type=Literal["chrf", "bleu"],
        metavar="chrf|bleu",
        help="Print the translation that agrees most with the others, in chrF "
        "or BLEU, of the --num-beams that were drawn (--sampling) or found "
        "(minimum Bayes risk). Default: print the one with the best score.",
    )
    add_rerankers(parser)
    add_reranking_weights(parser)
    _add_alignments(parser)
    add_import(parser)


def _add_alignments(parser):
    parser.add_argument(
        "--alignments",
        metavar="FILE",
        help="File for the aligned words of each sentence and its translation, "
        "such as `0-0 1-2`, source word first, from 0; each letter is a word "
        "in scripts without spaces. With --num-hypotheses there is a line for "
        "each of them. They come from the attention of a decoder block, or "
        "its mean over several runs. Default: none is written.",
    )
    parser.add_argument(
        "--alignment-layer",
        type=PositiveInt,
        metavar="N",
        help="Decoder block of --alignments, --replace-unknown, --keep-markup "
        "and the markup of XLIFF and TMX, from 1. Default: the last but one, "
        "or the last of two.",
    )
    parser.add_argument(
        "--replace-unknown",
        nargs="?",
        const="",
        metavar="TABLE",
        help="Replace unknown tokens by the source words that they are aligned "
        "with, or by their entries in a table: a text file of lines with a "
        "source word, a tab and a target word. Default: they are printed as "
        "⁇.",
    )


def run(options: Namespace) -> None:
    """Translates the input until it ends."""
    check_num_hypotheses(options)
    if options.mbr and options.num_hypotheses > 1:
        raise UserError("--mbr prints one translation: no --num-hypotheses.")
    if options.mbr and is_reranked(options):
        raise UserError(
            "--mbr and --rerank choose a translation in different ways: give "
            "one of them."
        )
    document = DocumentInput.of(options)
    has_languages = document is not None and document.has_markup
    _check_alignment_layer(options, has_languages)
    segments = SegmentOptions(options, document)
    name = input_name(options.input)
    resumption = Resumption(options, document)
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(resumption.open_files())
        warnings = stack.enter_context(
            LineWarnings(name, document and document.lines)
        )
        given = GivenLines(options)
        translator = load_translator(options, has_languages)
        _check_num_beams(options, translator)
        _check_layer(options, translator)
        segments.load_rules()
        runs = unknown = None
        if is_reranked(options):
            runs = RerankingRuns(options, translator)
        if options.replace_unknown is not None:
            unknown = _UnknownWords(options, translator)
        if document:
            windows = document.windows(translator.batch_size)
        else:
            windows = decode_windows(
                read_windows(options.input, translator.batch_size),
                name,
                options.errors,
                warnings,
                # A command that goes on searches whole windows.
                whole_windows=resumption.keeps,
            )
        windows = windows_with_terms(
            options, translator, windows, has_languages
        )
        windows = windows_in_context(
            options, translator, windows, document is not None
        )
        translators = LazilyCompiled(translator, options.compile)
        others = [] if runs is None else runs.translators
        if not resumption.skip(
            windows, given, [translators, *others], warnings
        ):
            return
        output, *more_files = files
        alignments = None
        if more_files:
            alignments = partial(_write_alignments, more_files[0], options)
        quiet = options.quiet or output.isatty()
        total = None
        if not quiet:
            total = (
                len(document.lines) if document else count_lines(options.input)
            )
        with progress_bar("lines", total, quiet, resumption.number) as advance:
            _translate(
                translators,
                windows,
                output,
                warnings,
                advance,
                _Choice(options, runs, unknown),
                alignments,
                given,
                segments,
                resumption,
                options.input in (None, "-") and is_typed(),
            )
        given.check_end()


def _check_alignment_layer(options, has_markup):
    """Refuses a layer of alignments that nothing asks for."""
    if options.alignment_layer is None or has_markup:
        return
    if (
        options.alignments is None
        and options.replace_unknown is None
        and not options.keep_markup
    ):
        raise UserError(
            "--alignment-layer needs --alignments, --replace-unknown, "
            "--keep-markup, or an --input that is XLIFF or TMX. Received: "
            f"{options.alignment_layer}. Leave it out, or give one of them."
        )


def _check_layer(options, translator):
    """Refuses a layer that the model lacks, before a line needs it."""
    if options.alignment_layer is None and options.replace_unknown is None:
        return
    from keras_deepnmt.analysis.word_alignments import MeanAttention

    with _refused_layer():
        MeanAttention(translator.model, options.alignment_layer)


def _check_num_beams(options, translator):
    """Refuses too few beams, also of the run's options."""
    if options.constraints is not None:
        from keras_deepnmt.decoding.phrases import check_beams

        check_beams(translator.options.for_hypotheses(options.num_hypotheses))
    number = max(translator.num_beams, options.num_hypotheses)
    if number == 1 and (options.mbr or is_reranked(options)):
        option = "--rerank" if options.rerank else "--rerank-reverse"
        option = "--mbr" if options.mbr else option
        raise UserError(
            f"{option} chooses from several translations of a sentence: "
            "--num-beams must be at least 2. Received: 1. Give --num-beams 12, "
            "for example."
        )


class _Choice:
    """Which of the hypotheses of a sentence are printed."""

    def __init__(self, options, runs, unknown):
        self._num_hypotheses = options.num_hypotheses
        self._format = options.nbest_format
        if self._num_hypotheses > 1:
            self._format = self._format or "plain"
        self._utility = options.mbr
        self._runs = runs
        self._unknown = unknown

    def search(self, translator, texts, advance, given, finished):
        """Returns the hypotheses of each sentence to choose from.

        The other arguments are those of `Translator.translate_nbest`.
        """
        number = self._num_hypotheses
        if self._utility or self._runs or (self._unknown and number > 1):
            number = max(translator.num_beams, number)
        return translator.translate_nbest(
            texts,
            number,
            advance,
            # Each token sequence has its own probability.
            distinct=False if self._utility else None,
            finished=finished,
            **given,
        )

    def choose(self, translator, texts, nbest, warn):
        """Returns those of each sentence to print, best first.

        `warn` is called with the place of a text and what is wrong with it.
        """
        from keras_deepnmt.translator.results import Asked

        if self._runs:
            reranker = self._runs.reranker(translator, texts, warn)
            nbest = reranker.rerank(texts, nbest)
        if self._utility:
            nbest = [self._consensus(found, translator) for found in nbest]
        if self._num_hypotheses == 1:
            nbest = [found[:1] for found in nbest]
        asked = Asked(self._num_hypotheses, distinct=not translator.sampling)
        # Texts may be equal only without their unknown tokens.
        nbest = self.finish(translator, texts, nbest)
        return [asked.of(found) for found in nbest]

    def finish(self, translator, texts, nbest):
        """Returns those that were chosen without their unknown tokens."""
        if self._unknown:
            nbest = self._unknown.replaced(translator, texts, nbest)
        return nbest

    def _consensus(self, found, translator):
        from keras_deepnmt.evaluation import minimum_bayes_risk

        # Those with all phrases that were required come first.
        found = [h for h in found if h.constraints_met] or found
        log_probs = [hypothesis.log_prob for hypothesis in found]
        if translator.sampling:
            log_probs = None
        texts = [hypothesis.text for hypothesis in found]
        return [found[minimum_bayes_risk(texts, log_probs, self._utility)]]

    def lines(self, translator, nbest, first):
        """Yields the lines to print, without line ends.

        `first` is the number of the first sentence, from 0.
        """
        if self._format is None:
            yield from (as_line(hypotheses[0].text) for hypotheses in nbest)
            return
        names = self._runs.feature_names if self._runs else ()
        yield from nbest_lines(
            nbest, first, self._format, translator.target_tokenizer, names
        )


class _UnknownWords:
    """Replaces the unknown tokens of the translations to print."""

    def __init__(self, options, translator):
        from keras_deepnmt.analysis import read_word_table

        if not translator.allow_unknown:
            raise UserError(
                "--replace-unknown needs unknown tokens, which the search "
                "forbids. Give --allow-unknown true."
            )
        file = options.replace_unknown
        self._table = read_word_table(file) if file else None
        self._layer = options.alignment_layer

    def replaced(self, translator, texts, nbest):
        """Returns the same hypotheses of each sentence, with other texts."""
        from keras_deepnmt.analysis import replace_unknown

        sources = [
            text
            for text, found in zip(texts, nbest, strict=True)
            for _ in found
        ]
        with _refused_layer():
            flat = replace_unknown(
                translator,
                sources,
                list(itertools.chain.from_iterable(nbest)),
                self._table,
                self._layer,
            )
        hypotheses = iter(flat)
        return [list(itertools.islice(hypotheses, len(f))) for f in nbest]


@contextlib.contextmanager
def _refused_layer():
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise UserError(
            str(error).replace("`layer`", "--alignment-layer")
        ) from error


def _translate(
    translators,
    windows,
    output,
    warnings,
    advance,
    choice,
    write_alignments,
    given,
    segments,
    resumption,
    is_dialog,
):
    number = resumption.number
    # Before a window is read, which may add warnings of its lines, or fail.
    resumption.keep(number, warnings.state)
    for texts in windows:
        translator = translators.choose(texts)
        asked = given.take(len(texts), translator)
        resumption.begin_next(texts, asked)
        lines = segments.take(translator, texts, asked, number + 1)
        translator.on_truncated = partial(
            _warn_truncated, warnings, lines, translator.max_source_length
        )
        # A line may have several sentences, or parts between tags.
        share = len(texts) / max(1, len(lines.reads))
        nbest = choice.search(
            translator,
            lines.reads,
            partial(_advance, advance, share, resumption),
            lines.given,
            resumption.batches,
        )
        nbest = choice.choose(
            translator, lines.reads, nbest, partial(_warn, warnings, lines)
        )
        # Markup is placed by alignments, of `--alignment-layer`.
        with _refused_layer():
            nbest, checked = lines.finish(
                nbest, partial(_finish_again, choice, translator)
            )
        for place, (text, hypotheses) in enumerate(
            zip(texts, checked, strict=True)
        ):
            own = {name: values[place] for name, values in asked.items()}
            for fault in _faults(translator, text, hypotheses, own):
                warnings.add(number + 1 + place, fault)
        printed = choice.lines(translator, nbest, number)
        output.writelines(f"{line}\n" for line in printed)
        output.flush()
        if write_alignments is not None:
            write_alignments(translator, texts, nbest)
        number += len(texts)
        if is_dialog:
            warnings.print()  # at once, to the person who typed the line
        resumption.keep(number, warnings.state)


def _advance(advance, share, resumption, number):
    advance(share * number)
    resumption.keep_now_and_then()


def _finish_again(choice, translator, texts, hypotheses):
    nbest = [[hypothesis] for hypothesis in hypotheses]
    return [f[0] for f in choice.finish(translator, texts, nbest)]


def _faults(translator, text, found, given):
    """Yields what is wrong with the translations of the sentences of a line."""
    from keras_deepnmt.translator.missed_phrases import why_missed

    if any(hypothesis.truncated for hypothesis in found):
        yield TRANSLATION_CUT
    for hypothesis in found:
        if not hypothesis.constraints_met:
            reason = why_missed(translator, text, hypothesis, **given)
            if reason is not None:
                yield _MISSED[reason]
    is_empty = not any(hypothesis.text for hypothesis in found)
    if given.get("prefixes", "").strip() and is_empty:
        yield _EMPTY


def _write_alignments(file, options, translator, texts, nbest):
    """Writes a line for each hypothesis."""
    from keras_deepnmt.analysis import align_words
    from keras_deepnmt.evaluation import format_alignment

    targets = [hypothesis.text for found in nbest for hypothesis in found]
    sources = [
        text for text, found in zip(texts, nbest, strict=True) for _ in found
    ]
    with _refused_layer():
        found = align_words(
            translator, sources, targets, options.alignment_layer
        )
    file.writelines(f"{format_alignment(links)}\n" for links in found)


def _warn(warnings, lines, place, fault):
    warnings.add(lines.number(place), fault)


def _warn_truncated(warnings, lines, max_length, places):
    # A line may have several such sentences.
    for number in dict.fromkeys(map(lines.number, places)):
        warnings.add(number, source_cut(max_length))
