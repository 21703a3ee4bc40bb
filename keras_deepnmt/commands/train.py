"""`deepnmt train`: from a recipe to a run folder."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.overrides import (
    add_overrides,
    read_overrides,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt train transformer_tiny.multi30k_en_de --run-dir runs/multi30k
deepnmt train my.yaml --prepared prepared --set training.steps=100
"""
CONTINUE = "The same command goes on from the last checkpoint."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        type=str,
        help="A recipe's name (deepnmt models --recipes) or YAML file.",
    )
    parser.add_argument(
        "--run-dir",
        type=str,
        help="Run folder to write. Default: runs/NAME-OF-THE-RECIPE.",
    )
    parser.add_argument(
        "--prepared",
        type=str,
        help="Folder that prepare wrote. Default: data in the run "
        "folder, from the recipe's data section.",
    )
    parser.add_argument(
        "--data-dir",
        type=str,
        help="Folder that holds the named corpora; else they are fetched.",
    )
    add_overrides(parser)


def run(options: Namespace) -> None:
    """Trains, and prints the run folder.

    Args:
        options: what the parser returned.
    """
    from keras_deepnmt.recipes.loading import load_recipe
    from keras_deepnmt.runs.compilation_cache import ask_for_cache

    recipe = load_recipe(options.recipe, read_overrides(options.set))
    run_dir = options.run_dir or f"runs/{recipe.name}"
    if recipe.training.jit_compile:
        ask_for_cache(run_dir)
    import_backend()
    from keras_deepnmt.runs.train import train

    train(
        recipe,
        run_dir,
        data_dir=options.data_dir,
        prepared_dir=options.prepared,
        quiet=options.quiet,
    )
    print(run_dir)
