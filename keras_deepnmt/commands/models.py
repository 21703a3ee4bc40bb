"""`deepnmt models`: what can be trained."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options import VerbParser
from keras_deepnmt.commands.quiet_import import import_backend

EXAMPLE = """
deepnmt models "transformer_*"
deepnmt models --recipes
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        type=str,
        default="*",
        help="Names to list, with * and ? as wildcards.",
    )
    parser.add_argument(
        "--recipes",
        action="store_true",
        help="List the recipes that train takes, not the presets.",
    )


def run(options: Namespace) -> None:
    """Prints one name a line.

    Args:
        options: what the parser returned.
    """
    import_backend()
    if options.recipes:
        from keras_deepnmt.recipes.loading import list_recipes

        names = list_recipes(options.pattern)
    else:
        from keras_deepnmt.zoo import list_models

        names = list_models(options.pattern)
    for name in names:
        print(name)
