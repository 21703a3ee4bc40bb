"""The option `--set KEY=VALUE`, which changes values of a recipe."""

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.errors import UserError
from keras_deepnmt.yaml_files import yaml_value


def add_overrides(parser: VerbParser) -> None:
    """Adds the option `--set`."""
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="Change values of the recipe, for example training.steps=100. "
        "Values are written as in YAML. A layer for a slot of the model is "
        "given by its name, with its arguments if needed.",
    )


def read_overrides(words: list[str]) -> dict[str, object]:
    """Returns the values of `--set` by dotted key."""
    overrides = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not (key and separator):
            raise UserError(f"`--set` must be KEY=VALUE. Received: {word}")
        try:
            overrides[key] = yaml_value(value)
        except ValueError as error:
            raise UserError(
                f"`--set`: the value of {key} must be YAML. Received: {value}"
            ) from error
    return overrides
