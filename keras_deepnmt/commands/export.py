"""`deepnmt export`: exports a run as a SavedModel for TensorFlow Serving."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_search_options,
    load_translator,
)
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.quiet_import import library_lines_removed

EXAMPLE = """
deepnmt export runs/demo served/demo
deepnmt verify served/demo
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt export`."""
    add_run_folder(parser)
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=str,
        help="Model folder for TensorFlow Serving. The SavedModel is written "
        "to a subfolder with the next version number: 1, 2, ...",
    )
    add_search_options(parser)
    add_checkpoint(parser)


def run(options: Namespace) -> None:
    """Exports the run and prints the folder of the new version."""
    translator = load_translator(options)
    from keras_deepnmt.serving import export

    with library_lines_removed():
        folder = export(translator, options.directory)
    print(folder)
