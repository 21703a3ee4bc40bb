"""`deepnmt recipe`: lists recipes, prints a new one, or one with all values."""

import dataclasses
import sys

from jsonargparse import Namespace

from keras_deepnmt.commands.options.overrides import (
    add_overrides,
    read_overrides,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError
from keras_deepnmt.suggestions import did_you_mean

EXAMPLE = """
deepnmt recipe --list "*.multi30k_en_de"
deepnmt recipe --new --preset transformer_base > recipe.yaml
deepnmt recipe --show recipe.yaml --set training.steps=100
deepnmt recipe --json-schema > recipe.schema.json
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt recipe`."""
    parser.add_argument(
        "--new",
        action="store_true",
        help="Print a recipe to start from, with comments. Redirect it to a "
        "file and name your corpus in it.",
    )
    parser.add_argument(
        "--preset",
        metavar="PRESET",
        help="With --new: preset of the model (`deepnmt models` lists them). "
        "Default: transformer_tiny.",
    )
    parser.add_argument(
        "--list",
        nargs="?",
        const="*",
        metavar="PATTERN",
        help="List the bundled recipes, PRESET.CORPUS, that match; * and ? are "
        "wildcards. A recipe of a plain model, such as "
        "transformer_tiny.demo_de_en, can be used with each preset that is "
        "compared with it. Without a pattern: all recipes.",
    )
    parser.add_argument(
        "--show",
        metavar="RECIPE",
        help="Check a recipe, a YAML file or the name of a bundled one, as "
        "train does, and print it with the values of all keys. What it takes "
        "over from another recipe (key extends) is filled in.",
    )
    parser.add_argument(
        "--prepared",
        metavar="DIR",
        help="With --show: folder written by `deepnmt prepare`; its data are "
        "shown if the recipe has no data section.",
    )
    parser.add_argument(
        "--json-schema",
        action="store_true",
        help="Print the JSON Schema of recipes, from which editors complete "
        "and check keys.",
    )
    add_overrides(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Prints what the options ask for."""
    _check(options)
    if options.new:
        text = _new(options.preset)
    elif options.list is not None:
        text = _list(options.list)
    elif options.json_schema:
        from keras_deepnmt.recipes.reference import schema_file

        text = schema_file().read_text(encoding="utf-8")
    else:
        text = _show(options)
    sys.stdout.write(text)


def _check(options):
    asked = [options.new, options.json_schema]
    asked += [options.show is not None, options.list is not None]
    if sum(asked) != 1:
        raise UserError(
            "give one of --list, --new, --show RECIPE and --json-schema. "
            f"Received: {sum(asked)} of them. See deepnmt recipe --help."
        )
    given = {
        "--preset": (options.preset is not None, options.new, "--new"),
        "--set": (options.set, options.show, "--show RECIPE"),
        "--prepared": (options.prepared, options.show, "--show RECIPE"),
    }
    for name, (is_given, is_allowed, owner) in given.items():
        if is_given and not is_allowed:
            raise UserError(f"`{name}` belongs to {owner}. Leave it out.")


def _new(preset):
    from keras_deepnmt.recipes.new_recipe import DEFAULT_PRESET, new_recipe

    if preset is None:
        return new_recipe(DEFAULT_PRESET)
    import_backend()
    from keras_deepnmt.zoo.registry import get_preset

    try:
        get_preset(preset)
    except ValueError as error:
        raise UserError(f"`--preset`: {error}") from error
    return new_recipe(preset)


def _list(pattern):
    from keras_deepnmt.recipes.loading import list_recipes

    names = list_recipes(pattern)
    if not names:
        raise UserError(
            f"no recipe matches {pattern!r}."
            f"{did_you_mean(pattern, list_recipes())} Leave the pattern out to "
            "list all."
        )
    return "".join(f"{name}\n" for name in names)


def _show(options):
    import yaml

    from keras_deepnmt.recipes.loading import load_recipe, recipe_content

    recipe = load_recipe(
        options.show, read_overrides(options.set), options.prepared
    )
    import_backend()
    from keras_deepnmt.runs.build import check_model
    from keras_deepnmt.runs.run_code import allow_code_of

    allow_code_of(recipe)
    # Whatever version of the presets a run folder's copy was made with.
    resolved = {k: v for k, v in recipe.resolved.items() if k == "code"}
    check_model(dataclasses.replace(recipe, resolved=resolved))
    return yaml.safe_dump(
        recipe_content(recipe), sort_keys=False, allow_unicode=True
    )
