"""`deepnmt average`: averages checkpoints of a run into a new run folder."""

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt average runs/demo --last 5 --output runs/demo-mean5
deepnmt average runs/demo --best 1 --output runs/demo-best
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt average`."""
    # A preset folder and a trained model have no checkpoints.
    parser.add_argument(
        "run",
        metavar="RUN",
        help="Run folder written by `deepnmt train`.",
    )
    parser.add_argument(
        "--last",
        type=PositiveInt,
        metavar="N",
        help="Number of checkpoints to average: the newest N.",
    )
    parser.add_argument(
        "--best",
        type=PositiveInt,
        metavar="N",
        help="Instead of --last: the N checkpoints of the best validations. A "
        "run keeps one, or with training.final_model: average_best those that "
        "it averages.",
    )
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="DIR",
        help="Run folder to create; it must not exist yet.",
    )
    add_import(parser)


def run(options: Namespace) -> None:
    """Averages the checkpoints and prints the new run folder."""
    if (options.last is None) == (options.best is None):
        raise UserError("needs --last or --best. See deepnmt average --help.")
    import_backend()
    from keras_deepnmt.runs.average import average

    average(options.run, options.output, last=options.last, best=options.best)
    print(options.output)
