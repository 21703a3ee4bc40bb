"""The option `--import`, for files with the user's own classes."""

import contextlib

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser


def add_import(parser: VerbParser) -> None:
    """Adds the option `--import`."""
    parser.add_argument(
        "--import",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE|MODULE",
        help="Python files, or installed modules, with your own layers, "
        "losses, metrics or other classes, which the recipe or the model "
        "names. They are run. A run folder or preset folder keeps a copy, "
        "which is found without this option; a file given here is used in its "
        "place.",
    )


def given_code(options: Namespace) -> contextlib.AbstractContextManager:
    """Prefers the files of `--import` as long as the command runs."""
    entries = options.get("import")
    if not entries:
        return contextlib.nullcontext()
    from keras_deepnmt.own_code.loading import given_code

    return given_code(entries)
