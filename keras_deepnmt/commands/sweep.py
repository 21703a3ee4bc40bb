"""`deepnmt sweep`: trains a recipe with several seeds and values."""

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.downloads import add_downloads
from keras_deepnmt.commands.options.overrides import (
    add_overrides,
    read_overrides,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal import score_tables
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.terminal_text import table_text
from keras_deepnmt.yaml_files import yaml_value

EXAMPLE = """
deepnmt sweep transformer_tiny.multi30k_en_de --seeds 3
deepnmt sweep my.yaml --seeds 3 --grid model.overrides.dropout=0.1,0.3
deepnmt sweep my.yaml --seeds 11,12 --processes 2 \\
    --grid model.preset=transformer_tiny,hybrid_self_attention_tiny
"""
CONTINUE = "Run the same command again to continue."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt sweep`."""
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="YAML file of a recipe, or the name of a bundled one.",
    )
    parser.add_argument(
        "--seeds",
        default="3",
        metavar="N",
        help="Number of seeds, counted from 1, or the seeds themselves with "
        "commas between them.",
    )
    parser.add_argument(
        "--grid",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE,VALUE",
        help="Values of the recipe to try, written as in YAML with commas "
        "between them. All combinations of several keys are tried. Default: "
        "only the seeds differ.",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder of the runs. Default: sweeps/NAME, where NAME is the name "
        "of the recipe.",
    )
    parser.add_argument(
        "--processes",
        type=PositiveInt,
        default=1,
        metavar="N",
        help="Runs that train at the same time. The devices in the environment "
        "variable CUDA_VISIBLE_DEVICES are divided among them.",
    )
    parser.add_argument(
        "--prepared",
        metavar="DIR",
        help="Folder written by `deepnmt prepare`, for all runs. Default: the "
        "recipe's data are prepared once, into the folder of the runs.",
    )
    add_downloads(parser)
    add_overrides(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Trains the runs and prints their scores over the seeds."""
    from keras_deepnmt.recipes.loading import recipe_name

    overrides = read_overrides(options.set)
    name = overrides.get("name") or recipe_name(options.recipe)
    seeds, grid = _read_seeds(options.seeds), _read_grid(options.grid)
    import_backend()
    from keras_deepnmt.runs.sweep import sweep, sweep_scores

    results = sweep(
        options.recipe,
        options.output or f"sweeps/{name}",
        grid=grid,
        seeds=seeds,
        overrides=overrides,
        prepared_dir=options.prepared,
        data_dir=options.data_dir,
        processes=options.processes,
        say=Console(options.quiet).print,
    )
    failed = [result for result in results if result.failure is not None]
    if len(failed) < len(results):
        tables = score_tables.seeds(sweep_scores(results))
        print(table_text(tables))
    if failed:
        raise UserErrors(
            f"{result.run.name} failed: {result.failure}" for result in failed
        )


def _read_seeds(text):
    try:
        seeds = [int(word) for word in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < (0 if "," in text else 1):
        raise UserError(
            "`--seeds` must be a number of seeds, or seeds with commas between "
            f"them. Received: {text}"
        )
    return seeds if "," in text else list(range(1, seeds[0] + 1))


def _read_grid(words):
    grid = {}
    for word in words:
        key, separator, values = word.partition("=")
        if key in grid:
            raise UserError(
                f"`--grid`: must have all values of {key} in one place. "
                f"Received: {' '.join(words)}"
            )
        try:
            grid[key] = yaml_value(f"[{values}]")
        except ValueError as error:
            raise UserError(
                f"`--grid`: the values of {key} must be YAML with commas "
                f"between them. Received: {values}"
            ) from error
        if not (key and separator and grid[key]):
            raise UserError(
                f"`--grid` must be KEY=VALUE,VALUE. Received: {word}"
            )
    return grid
