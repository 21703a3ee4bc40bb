"""Where public corpora come from; limits on downloads and unpacked files."""

import contextlib

from jsonargparse import Namespace

from keras_deepnmt.commands.options.dataclass_fields import (
    add_dataclass_options,
    as_options,
    given_options,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError
from keras_deepnmt.limits import Limits, used_limits


def add_downloads(parser: VerbParser) -> None:
    """Adds `--data-dir` and an option for each limit."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="Folder with copies of public corpora. Default: they are "
        "downloaded.",
    )
    add_dataclass_options(parser, Limits)


def given_limits(options: Namespace) -> contextlib.AbstractContextManager:
    """Uses the limits that are given as long as the command runs."""
    try:
        return used_limits(Limits(**given_options(options, Limits)))
    except UserError as error:
        raise UserError(as_options(str(error), Limits)) from error
