"""`deepnmt score`: computes log-probabilities of existing translations."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import (
    add_batch_size,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt score runs/demo --source test.en --target test.de > scores.tsv
"""
CONTINUE = "The lines printed so far are complete."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt score`."""
    add_run_folder(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            type=str,
            required=True,
            metavar="FILE",
            help=f"Text file with the {side} side, one sentence per line.",
        )
    parser.add_argument(
        "--totals",
        action="store_true",
        help="Print one row per sentence (line, tokens, log_prob) instead of "
        "one per token.",
    )
    add_batch_size(parser)


def run(options: Namespace) -> None:
    """Prints log-probabilities (natural logarithms), separated by tabs."""
    import_backend()
    from keras_deepnmt.runs.evaluate import read_pairs

    sources, targets = read_pairs(options.source, options.target)
    translator = load_translator(options)
    with progress_bar("pairs", len(sources), options.quiet) as advance:
        scores = translator.score(sources, targets, advance)
    if options.totals:
        print("line\ttokens\tlog_prob")
    else:
        print("line\tposition\ttoken\tlog_prob")
    for line, score in enumerate(scores, start=1):
        if options.totals:
            print(f"{line}\t{len(score.tokens)}\t{score.total:.6f}")
            continue
        rows = zip(score.tokens, score.log_probs, strict=True)
        for position, (token, log_prob) in enumerate(rows, start=1):
            print(f"{line}\t{position}\t{token}\t{log_prob:.6f}")
