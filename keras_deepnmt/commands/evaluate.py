"""`deepnmt evaluate`: the scores of a run, with their signatures."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import add_decoding_options
from keras_deepnmt.commands.options.parser import VerbParser, add_run
from keras_deepnmt.commands.terminal.console import counting
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt evaluate runs/demo
deepnmt evaluate runs/demo --source test.en --target test.de --tokenize none
"""
CONTINUE = "No score was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    add_run(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            type=str,
            metavar="FILE",
            help=f"File of {side} lines, instead of the run's own test set.",
        )
    parser.add_argument(
        "--split",
        type=str,
        default="test",
        help="Split of the run's own data: test or valid.",
    )
    parser.add_argument(
        "--prepared",
        type=str,
        help="The run's prepared folder, where it was moved.",
    )
    parser.add_argument(
        "--tokenize",
        type=str,
        help="sacreBLEU's tokenizer, none for tokenised text. Default: the "
        "run's.",
    )
    parser.add_argument(
        "--lowercase",
        type=bool,
        help="Whether case is ignored. Default: the run's.",
    )
    parser.add_argument(
        "--metrics",
        type=str,
        nargs="+",
        help="Of bleu, chrf and ter. Default: the run's.",
    )
    parser.add_argument(
        "--output", type=str, help="File to write the translations to."
    )
    add_decoding_options(parser)


def run(options: Namespace) -> None:
    """Adds a row to the run's `scores.json` and prints its scores.

    Args:
        options: what the parser returned.
    """
    import_backend()
    from keras_deepnmt.runs.evaluate import evaluate

    with counting("sentences", quiet=options.quiet) as advance:
        row = evaluate(
            options.run,
            source_file=options.source,
            target_file=options.target,
            split=options.split,
            prepared_dir=options.prepared,
            num_beams=options.num_beams,
            length_penalty=options.length_penalty,
            length_offset=options.length_offset,
            batch_size=options.batch_size,
            tokenize=options.tokenize,
            lowercase=options.lowercase,
            metrics=options.metrics and tuple(options.metrics),
            output_file=options.output,
            on_progress=advance,
        )
    for name, score in row["scores"].items():
        print(f"{name}\t{score['value']:.2f}\t{score['signature']}")
