"""`deepnmt score`: computes log-probabilities of existing translations."""

import math
from collections.abc import Iterator

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import (
    LazilyCompiled,
    add_compile,
)
from keras_deepnmt.commands.options.decoding import (
    add_batch_size,
    add_checkpoint,
    add_ensemble,
    add_tag,
    load_translator,
)
from keras_deepnmt.commands.options.output_file import add_output, open_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.input_pairs import check_sides, read_pairs
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings

EXAMPLE = """
deepnmt score runs/demo --source test.en --target test.de > scores.tsv
paste test.en test.de | deepnmt score runs/demo --totals
deepnmt translate runs/demo < test.en \\
    | deepnmt score runs/reverse --source - --target test.en --totals
"""
CONTINUE = "The lines printed so far are complete."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt score`."""
    add_ensemble(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            type=str,
            metavar="FILE",
            help=f"Text file with the {side} side, one sentence per line, "
            "plain or gzipped; - is standard input. Default: standard input "
            "has both sides, each line a source, a tab and its translation.",
        )
    parser.add_argument(
        "--totals",
        action="store_true",
        help="Print one row per sentence (line, tokens, log_prob) instead of "
        "one per token.",
    )
    add_tag(parser)
    add_output(parser)
    add_batch_size(parser)
    add_checkpoint(parser)
    add_compile(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Prints log-probabilities (natural logarithms), separated by tabs."""
    check_sides(options.source, options.target)
    with open_output(options.output) as output, LineWarnings() as warnings:
        translator = load_translator(options)
        windows = read_pairs(
            options.source, options.target, translator.batch_size
        )
        columns = ("tokens",) if options.totals else ("position", "token")
        output.write("\t".join(["line", *columns, "log_prob"]) + "\n")
        quiet = options.quiet or output.isatty()
        with progress_bar("pairs", quiet=quiet) as advance:
            first = 1
            translators = LazilyCompiled(translator, options.compile)
            for pairs in windows:
                scores = _score(translators, pairs, first, warnings, advance)
                write = _total if options.totals else _tokens
                for line, score in enumerate(scores, start=first):
                    output.writelines(write(line, score))
                output.flush()
                first += len(pairs)


def _score(translators, pairs, first, warnings, advance):
    """Scores a window of pairs; the score of a bad pair is `None`.

    `first` is the line number of its first pair.
    """
    translator = translators.choose([pair.source for pair in pairs])
    rows = _good_pairs(translator, pairs, first, warnings)

    def warn(places):
        for place in places:
            warnings.add(
                first + rows[place],
                f"the source is longer than {translator.max_source_length - 1} "
                "tokens, the model's position range; the rest was not used.",
            )

    translator.on_truncated = warn
    advance(len(pairs) - len(rows))
    found = translator.score(
        [pairs[row].source for row in rows],
        [pairs[row].target for row in rows],
        advance,
    )
    scores = [None] * len(pairs)
    for row, score in zip(rows, found, strict=True):
        scores[row] = score
    return scores


def _good_pairs(translator, pairs, first, warnings) -> list[int]:
    """Returns the places of the pairs that can be scored; warns of others."""
    most = translator.model.max_length
    targets = translator.target_tokenizer.encode([p.target for p in pairs])
    rows = []
    for row, (pair, ids) in enumerate(zip(pairs, targets, strict=True)):
        fault = pair.fault
        if fault is None and most is not None and len(ids) >= most:
            fault = (
                f"the target is longer than {most - 1} tokens, the model's "
                "position range; not scored."
            )
        if fault is None:
            rows.append(row)
        else:
            warnings.add(first + row, fault)
    return rows


def _total(line, score) -> Iterator[str]:
    if score is None:
        yield f"{line}\t0\t{math.nan}\n"
    else:
        yield f"{line}\t{len(score.tokens)}\t{score.total:.6f}\n"


def _tokens(line, score) -> Iterator[str]:
    if score is None:
        # Positions count from 1.
        yield f"{line}\t0\t\t{math.nan}\n"
        return
    rows = zip(score.tokens, score.log_probs, strict=True)
    for position, (token, log_prob) in enumerate(rows, start=1):
        yield f"{line}\t{position}\t{token}\t{log_prob:.6f}\n"
