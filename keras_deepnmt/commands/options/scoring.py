"""How translations are scored, and on which part of a run's own data."""

from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError

_SPLIT = "test"


def add_split(parser: VerbParser) -> None:
    """Adds `--split` and `--prepared`, for texts of the run's own data."""
    parser.add_argument(
        "--split",
        default=_SPLIT,
        metavar="{test,valid}",
        help="Split of the run's own data, which --source replaces.",
    )
    parser.add_argument(
        "--prepared",
        metavar="DIR",
        help="The run's prepared data, if the folder was moved since training.",
    )


def check_split(split: str, source: str | None) -> None:
    """Refuses a split beside a text that replaces the run's own data."""
    # A default that was given cannot be told from one that was not.
    if source and split != _SPLIT:
        raise UserError(
            f"--split {split} cannot be given with --source, which replaces "
            "the run's own data. Leave one of them out."
        )


def add_scoring(parser: VerbParser, without_run: str = "") -> None:
    """Adds `--tokenize` and `--lowercase`.

    `without_run` ends the help of `--tokenize`: what the tokenizer is of texts
    for which there is no run.
    """
    parser.add_argument(
        "--tokenize",
        metavar="NAME",
        help="sacreBLEU tokenizer for BLEU, such as 13a, or none for text that "
        "is already tokenized. Default: as in the run's recipe, or that of "
        f"the target's script, such as zh{without_run}.",
    )
    parser.add_argument(
        "--lowercase",
        type=bool,
        help="Whether BLEU and chrF ignore case. Default: as in the run's "
        "recipe, or false.",
    )


def add_resamples(parser: VerbParser) -> None:
    """Adds `--resamples`."""
    parser.add_argument(
        "--resamples",
        type=PositiveInt,
        default=1_000,
        metavar="N",
        help="Samples of the bootstrap intervals and tests.",
    )
