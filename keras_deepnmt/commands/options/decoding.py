"""The options of every verb that translates."""

from typing import TYPE_CHECKING

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeFloat, PositiveInt

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def add_decoding_options(parser: VerbParser) -> None:
    """Adds the options of the search; without them the run's own hold.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "--num-beams",
        type=PositiveInt,
        help="Hypotheses kept by the search; 1 is greedy. Default: the run's.",
    )
    parser.add_argument(
        "--length-penalty",
        type=NonNegativeFloat,
        help="Exponent of the length penalty; 0 is none. Default: the run's.",
    )
    parser.add_argument(
        "--length-offset",
        type=NonNegativeFloat,
        help="What the length penalty adds to lengths: 5 is GNMT's, 0 divides "
        "by a plain power of the length. Default: the run's.",
    )
    add_batch_size(parser)


def add_batch_size(parser: VerbParser) -> None:
    """Adds the number of sentences computed together.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "--batch-size",
        type=PositiveInt,
        help="Sentences computed together. Default: the run's.",
    )


def load_translator(options: Namespace) -> "Translator":
    """Loads the run named on the command line, with the options given.

    Args:
        options: what the parser returned.

    Returns:
        The translator.

    Raises:
        UserError: if the run folder is incomplete or does not fit together.
    """
    import_backend()
    from keras_deepnmt.translator import Translator

    names = ("num_beams", "length_penalty", "length_offset", "batch_size")
    given = {name: options.get(name) for name in names}
    return Translator.load(
        options.run, **{k: v for k, v in given.items() if v is not None}
    )
