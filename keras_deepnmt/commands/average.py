"""`deepnmt average`: the mean of the last checkpoints, as a run of its own."""

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.parser import VerbParser, add_run
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt average runs/demo --last 5 --output runs/demo-mean5
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    add_run(parser)
    parser.add_argument(
        "--last",
        type=PositiveInt,
        required=True,
        help="How many of the newest checkpoints.",
    )
    parser.add_argument(
        "--output", type=str, required=True, help="Run folder to write."
    )


def run(options: Namespace) -> None:
    """Averages, and prints the new run folder.

    Args:
        options: what the parser returned.
    """
    import_backend()
    from keras_deepnmt.runs.average import average

    average(options.run, options.output, last=options.last)
    print(options.output)
