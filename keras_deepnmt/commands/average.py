"""`deepnmt average`: averages the last checkpoints into a new run folder."""

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt average runs/demo --last 5 --output runs/demo-mean5
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt average`."""
    add_run_folder(parser)
    parser.add_argument(
        "--last",
        type=PositiveInt,
        required=True,
        metavar="N",
        help="Number of checkpoints to average: the newest N.",
    )
    parser.add_argument(
        "--output",
        "-o",
        type=str,
        required=True,
        metavar="DIR",
        help="Run folder to create; it must not exist yet.",
    )


def run(options: Namespace) -> None:
    """Averages the checkpoints and prints the new run folder."""
    import_backend()
    from keras_deepnmt.runs.average import average

    average(options.run, options.output, last=options.last)
    print(options.output)
