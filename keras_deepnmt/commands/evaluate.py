"""`deepnmt evaluate`: scores a run on a test set with sacreBLEU."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import (
    add_compile,
    start_backend,
)
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_decoding_options,
    given_search_options,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.console import progress_bar
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings

EXAMPLE = """
deepnmt evaluate runs/demo
deepnmt evaluate runs/demo --source test.en --target test.de --tokenize none
"""
CONTINUE = "No score was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt evaluate`."""
    add_run_folder(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            type=str,
            metavar="FILE",
            help=f"Text file with {side} sentences, one per line. Both sides "
            "are needed; they replace the run's own data.",
        )
    parser.add_argument(
        "--split",
        type=str,
        default="test",
        metavar="{test,valid}",
        help="Split of the run's own data to translate. Ignored if --source "
        "and --target are given.",
    )
    parser.add_argument(
        "--prepared",
        type=str,
        metavar="DIR",
        help="The run's prepared data, if the folder was moved since training.",
    )
    parser.add_argument(
        "--tokenize",
        type=str,
        metavar="NAME",
        help="sacreBLEU tokenizer for BLEU, such as 13a, or none for text that "
        "is already tokenized. Default: as in the run's recipe.",
    )
    parser.add_argument(
        "--lowercase",
        type=bool,
        help="Whether BLEU and chrF ignore case. Default: as in the run's "
        "recipe.",
    )
    parser.add_argument(
        "--metrics",
        type=str,
        nargs="+",
        metavar="NAME",
        help="Scores to compute: any of bleu, chrf and ter. Default: as in "
        "the run's recipe.",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=str,
        metavar="FILE",
        help="File to write the translations to. Default: none is written.",
    )
    add_decoding_options(parser)
    add_checkpoint(parser)
    add_compile(parser, lazily=False)


def run(options: Namespace) -> None:
    """Adds the scores to the run's `scores.json` and prints them."""
    search_options = given_search_options(options)
    start_backend()
    from keras_deepnmt.runs.evaluate import evaluate

    def warn(places):
        for place in places:
            warnings.add(
                place + 1,
                "the source is longer than the model's position range; the "
                "rest was not translated.",
            )

    with (
        LineWarnings() as warnings,
        progress_bar("sentences", quiet=options.quiet) as advance,
    ):
        row = evaluate(
            options.run,
            source_file=options.source,
            target_file=options.target,
            split=options.split,
            prepared_dir=options.prepared,
            batch_size=options.batch_size,
            batch_tokens=options.batch_tokens,
            **search_options,
            tokenize=options.tokenize,
            lowercase=options.lowercase,
            metrics=options.metrics and tuple(options.metrics),
            output_file=options.output,
            checkpoint=options.checkpoint,
            compiled=options.compile is not False,
            on_truncated=warn,
            on_progress=advance,
        )
    for name, score in row["scores"].items():
        print(f"{name}\t{score['value']:.2f}\t{score['signature']}")
