"""`deepnmt score`: computes log-probabilities of existing translations."""

import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

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
    add_target_language,
    load_translator,
)
from keras_deepnmt.commands.options.output_file import add_output, open_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.input_lines import (
    input_name,
    is_text_file,
)
from keras_deepnmt.commands.terminal.input_pairs import check_sides, read_pairs
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.commands.terminal.nbest_lists import (
    DESCRIPTION,
    check_feature_name,
    read_list,
)
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt score runs/demo --source test.en --target test.de > scores.tsv
paste test.en test.de | deepnmt score runs/demo --totals
deepnmt translate runs/demo < test.en \\
    | deepnmt score runs/reverse --source - --target test.en --totals
deepnmt translate runs/demo --num-hypotheses 4 --nbest-format moses < test.en \\
    | deepnmt score runs/other --source test.en --nbest - --feature Other
"""
CONTINUE = "The lines printed so far are complete."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt score`."""
    add_ensemble(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            metavar="FILE",
            help=f"Text file with the {side} side, one sentence per line, "
            "plain or compressed; - is standard input. Default: standard input "
            "has both sides, each line a source, a tab and its translation.",
        )
    parser.add_argument(
        "--nbest",
        metavar="FILE",
        help="N-best list of translations of --source, in place of --target: "
        f"{DESCRIPTION}. The rows count its lines.",
    )
    parser.add_argument(
        "--feature",
        metavar="NAME",
        help="Print the list of --nbest with the log-probability of each "
        "translation as one more feature of this name. Default: print a table.",
    )
    parser.add_argument(
        "--pieces",
        action="store_true",
        help="Score the `pieces` that a list in JSON has, which the search or "
        "the draw chose, and not those of the tokenizer for the text.",
    )
    parser.add_argument(
        "--totals",
        action="store_true",
        help="Print one row per sentence (line, tokens, log_prob) instead of "
        "one per token.",
    )
    add_tag(parser)
    add_target_language(parser)
    add_output(parser)
    add_batch_size(parser)
    add_checkpoint(parser)
    add_compile(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Prints log-probabilities (natural logarithms)."""
    _check(options)
    with (
        open_output(options.output) as output,
        LineWarnings() as warnings,
        LineWarnings(input_name(options.source or "-")) as lacking,
    ):
        translator = load_translator(options)
        windows = _checked_windows(options, translator, lacking)
        if options.feature is None:
            columns = ("tokens",) if options.totals else ("position", "token")
            output.write("\t".join(["line", *columns, "log_prob"]) + "\n")
        quiet = options.quiet or output.isatty()
        with progress_bar("pairs", quiet=quiet) as advance:
            first = 1
            translators = LazilyCompiled(translator, options.compile)
            for pairs, shown in windows:
                scores = _score(translators, pairs, first, warnings, advance)
                if options.feature is not None:
                    write = partial(_listed, options.feature)
                else:
                    shown = range(first, first + len(pairs))
                    write = _total if options.totals else _tokens
                for line, score in zip(shown, scores, strict=True):
                    output.writelines(write(line, score))
                output.flush()
                first += len(pairs)


def _check(options):
    """Refuses options that do not fit together."""
    if options.nbest is None:
        for name in ("feature", "pieces"):
            if options[name]:
                raise UserError(f"--{name} needs --nbest.")
        check_sides(options.source, options.target)
        return
    if options.source is None or options.target is not None:
        raise UserError(
            "--nbest needs --source, the file of the sentences that the list "
            "translates, and no --target."
        )
    if options.source == options.nbest == "-":
        raise UserError(
            "only one of `--source` and `--nbest` can be -, standard input."
        )
    if options.feature is not None:
        check_feature_name(options.feature)
        if options.totals:
            raise UserError("--totals prints a table: no --feature.")


def _checked_windows(options, translator, lacking):
    """The windows to score; a fault of the input is found before the first.

    In standard input and pipes it is, if it is in the first window. Sentences
    that the list of `--nbest` does not translate are added to `lacking`.
    """
    names = options.source, options.nbest or options.target
    if all(name not in (None, "-") and is_text_file(name) for name in names):
        deque(_windows(options, translator), maxlen=0)
    windows = _windows(options, translator, lacking)
    return itertools.chain(list(itertools.islice(windows, 1)), windows)


def _windows(options, translator, lacking=None):
    """Yields pairs to score, and what is shown beside their scores."""
    if options.nbest is not None:
        yield from _windows_of_list(options, translator, lacking)
        return
    size = translator.batch_size
    for window in read_pairs(options.source, options.target, size):
        yield window, window


def _windows_of_list(options, translator, lacking):
    """Yields pairs to score and the lines of the list that they are from."""
    first, name = 1, input_name(options.nbest)

    def warn(numbers):
        for number in [] if lacking is None else numbers:
            fault = f"no translation in {name}. Is it the list of this file?"
            lacking.add(number + 1, fault)

    for window in read_list(
        options.nbest, options.source, translator.batch_size, warn
    ):
        pairs, listed = map(list, zip(*window, strict=True))
        for place, found in enumerate(listed):
            line = f"{name}, line {first + place}"
            if options.feature and found.has_feature(options.feature):
                raise UserError(
                    f"{line}: has a feature {options.feature} already. Give "
                    "`--feature` another name."
                )
            if options.pieces and pairs[place].fault is None:
                ids = _ids(translator.target_tokenizer, found.pieces, line)
                pairs[place] = replace(pairs[place], target=ids)
        yield pairs, listed
        first += len(listed)


def _ids(tokenizer, pieces, line):
    if not pieces:
        raise UserError(
            f"{line}: has no `pieces`, which `deepnmt translate --nbest-format "
            "json` writes."
        )
    try:
        return tokenizer.ids_of_pieces(pieces)
    except UserError as error:
        raise UserError(f"{line}: {error}") from error


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
    texts = [pair for pair in pairs if isinstance(pair.target, str)]
    # As `Translator.score` encodes them; ids have their tag.
    tagged = translator.tagged_targets(
        [pair.source for pair in texts], [pair.target for pair in texts]
    )
    encoded = iter(translator.target_tokenizer.encode(tagged))
    has_tag = translator.tag_side == "target"
    name = "target with its tag" if has_tag else "target"
    rows = []
    for row, pair in enumerate(pairs):
        fault, is_text = pair.fault, isinstance(pair.target, str)
        # Ids have their end id.
        length = len(next(encoded)) if is_text else len(pair.target) - 1
        if fault is None and most is not None and length >= most:
            fault = (
                f"the {name} is longer than {most - 1} tokens, the model's "
                "position range; not scored."
            )
        if fault is None:
            rows.append(row)
        else:
            warnings.add(first + row, fault)
    return rows


def _listed(name, hypothesis, score) -> Iterator[str]:
    total = math.nan if score is None else score.total
    yield f"{hypothesis.with_feature(name, total)}\n"


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
