"""`--set key=value`: changes to a recipe on the command line."""

import yaml

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError


def add_overrides(parser: VerbParser) -> None:
    """Adds `--set`.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "--set",
        type=str,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="Values to use instead of the recipe's, as in training.steps=100.",
    )


def read_overrides(words: list[str]) -> dict[str, object]:
    """Reads the values of `--set`, written as in a recipe.

    Args:
        words: `key=value` each, the key dotted, the value YAML.

    Returns:
        Values by dotted key.

    Raises:
        UserError: if a word has no `=`, or its value is not YAML.

    Example:
    >>> read_overrides(["training.steps=100", "data.joint=false"])
    {'training.steps': 100, 'data.joint': False}
    """
    overrides = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not (key and separator):
            raise UserError(f"`--set` takes KEY=VALUE. Received: {word}")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"`--set` {key}: not YAML: {value}") from error
    return overrides
