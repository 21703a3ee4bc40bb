"""`deepnmt export`: a SavedModel for TensorFlow Serving."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import (
    add_decoding_options,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run

EXAMPLE = """
deepnmt export runs/demo served/demo
deepnmt verify served/demo
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    add_run(parser)
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=str,
        help="Model folder to write; the export becomes its next version.",
    )
    add_decoding_options(parser)


def run(options: Namespace) -> None:
    """Exports a run and prints the folder of the new version.

    Args:
        options: what the parser returned.
    """
    translator = load_translator(options)
    from keras_deepnmt.serving import export

    print(export(translator, options.directory))
