"""The options of the commands that analyse runs: sentences, a token."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.compilation import add_compile
from keras_deepnmt.commands.options.decoding import (
    add_tag,
    check_tag_source,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.scoring import add_split, check_split
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    import keras

_TOKEN = "der"


def add_analyzed_sentences(parser: VerbParser) -> None:
    """Adds the options that choose what is translated and looked at."""
    parser.add_argument(
        "--sentences",
        type=PositiveInt,
        default=200,
        metavar="N",
        help="Largest number of sentences to look at.",
    )
    add_split(parser)
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            metavar="FILE",
            help=f"Text file with {side} sentences, one per line. Both sides "
            "are needed; they replace the run's own data.",
        )
    add_tag(parser)
    parser.add_argument(
        "--token",
        default=_TOKEN,
        metavar="WORD",
        help="Source token whose roles are listed.",
    )
    parser.add_argument(
        "--role-labels",
        metavar="FILE",
        help="Gold labels of source words to compare roles with, one line of "
        "JSON for each sentence of the test set.",
    )
    add_compile(parser, lazily=False)


def check_sides(options: Namespace) -> None:
    """Refuses one of two files without the other, and a tag without them.

    A split of the run's own data is refused with them.
    """
    if bool(options.source) != bool(options.target):
        raise UserError("--source and --target must be given together.")
    check_tag_source(options.tag, options.source)
    check_split(options.split, options.source)


def given_for_roles(options: Namespace) -> list[str]:
    """Returns the options that have an effect on roles alone."""
    # A default that was given cannot be told from one that was not.
    given = {
        "--token": options.token != _TOKEN,
        "--role-labels": options.role_labels is not None,
    }
    return [name for name in given if given[name]]


def check_roles(options: Namespace, models: "Iterable[keras.Model]") -> None:
    """Refuses options of roles if none of the models has roles."""
    from keras_deepnmt.analysis.role_interaction import has_roles

    for name in given_for_roles(options):
        if not any(map(has_roles, models)):
            raise UserError(
                f"{name} needs a model with role interaction, which has roles. "
                "Leave it out."
            )
        return


def analyzed_sentences(options: Namespace) -> dict[str, object]:
    """Returns the arguments of `AnalyzedRun` that the options give."""
    return {
        "num_sentences": options.sentences,
        "split": options.split,
        "source_file": options.source,
        "target_file": options.target,
        "tag": options.tag,
        "prepared_dir": options.prepared,
        "token": options.token,
        "label_file": options.role_labels,
        "compiled": options.compile is not False,
    }
