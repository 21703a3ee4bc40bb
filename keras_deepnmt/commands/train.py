"""`deepnmt train`: trains a recipe and writes a run folder."""

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeInt, PositiveInt

from keras_deepnmt.commands.options.downloads import add_downloads
from keras_deepnmt.commands.options.overrides import (
    add_overrides,
    read_overrides,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import TERMINATED, UserError
from keras_deepnmt.terminal_text import escape_controls

EXAMPLE = """
deepnmt train transformer_tiny.multi30k_en_de --run-dir runs/multi30k
deepnmt train my.yaml --prepared prepared --set training.steps=100
deepnmt train my.yaml --from-preset presets/mine --run-dir runs/tuned
deepnmt train my.yaml --set model.overrides.output_fusion=SurfaceFusion
deepnmt train my.yaml --set \\
    'model.overrides.encoder_aggregation={LayerAggregation: {strategy: dense}}'
"""
CONTINUE = "Run the same command again to continue from the last checkpoint."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt train`."""
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="YAML file of a recipe, or the name of a bundled one (`deepnmt "
        "models --recipes` lists them).",
    )
    _add_folders(parser)
    parser.add_argument(
        "--restart",
        action="store_true",
        help="Begin again from update 0 and delete the checkpoints, logs and "
        "scores of the run. Its finished model, if it has one, is replaced "
        "when the new one is complete. To continue later, leave this option "
        "out.",
    )
    parser.add_argument(
        "--allow-changes",
        action="store_true",
        help="Continue a run with other values of keys that updates depend on, "
        "such as training.learning_rate.peak or training.batch_tokens. They "
        "hold for the updates after the last checkpoint, and recipe.yaml "
        "records them. Other keys, such as training.validate_every and "
        "decoding.num_beams, may change without this option.",
    )
    parser.add_argument(
        "--exit-code-on-stop",
        type=NonNegativeInt,
        default=TERMINATED,
        metavar="CODE",
        help="Exit code if SIGTERM stops the training before its end, for "
        "example 75 for a scheduler that then starts the command again. "
        f"Default: {TERMINATED}.",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="Do everything up to the first update, measure a few updates, and "
        "print the batch shapes, the parameters, the memory and the time of "
        "the run. The run folder is not written.",
    )
    add_overrides(parser)
    add_import(parser)


def _add_folders(parser):
    """Adds the options that name folders."""
    parser.add_argument(
        "--run-dir",
        metavar="DIR",
        help="Run folder to write, or to continue. Default: runs/NAME, where "
        "NAME is the name of the recipe.",
    )
    parser.add_argument(
        "--prepared",
        metavar="DIR",
        help="Folder written by `deepnmt prepare`; the recipe then needs no "
        "data section. Default: that section is prepared into the folder data "
        "of the run folder.",
    )
    parser.add_argument(
        "--from-preset",
        metavar="DIR",
        help="Preset folder to fine-tune, written by `deepnmt export --format "
        "preset`, or name of a trained model. The run starts with its weights "
        "and has its model, which the recipe need not name; the data are "
        "prepared with its tokenizers, or --prepared must have them. Not "
        "needed to continue the run.",
    )
    parser.add_argument(
        "--extend-vocabulary",
        type=PositiveInt,
        metavar="N",
        help="Add at most N pieces to each vocabulary of the preset folder, "
        "learned from the training text: its characters that have no piece, "
        "then frequent pairs of pieces. The folder's pieces keep their ids. "
        "Not needed to continue the run.",
    )
    add_downloads(parser)


def run(options: Namespace) -> None:
    """Trains the model and prints the run folder."""
    from keras_deepnmt.recipes.loading import (
        fine_tuned_model,
        load_recipe,
        recipe_name,
    )
    from keras_deepnmt.xla.cache import ask_for_user_cache

    if options.exit_code_on_stop > 255:
        raise UserError(
            "`--exit-code-on-stop` must be at most 255. "
            f"Received: {options.exit_code_on_stop}"
        )
    overrides = read_overrides(options.set)
    name = overrides.get("name") or recipe_name(options.recipe)
    run_dir = options.run_dir or f"runs/{name}"
    model = fine_tuned_model(run_dir, options.from_preset, options.restart)
    recipe = load_recipe(options.recipe, overrides, options.prepared, model)
    if options.dry_run:
        _dry_run(recipe, run_dir, options)
        return
    if recipe.training.jit_compile:
        ask_for_user_cache()
    import_backend()
    from keras_deepnmt.runs.train import train

    train(
        recipe,
        run_dir,
        data_dir=options.data_dir,
        prepared_dir=options.prepared,
        from_preset=options.from_preset,
        extend_vocabulary=options.extend_vocabulary,
        restart=options.restart,
        allow_changes=options.allow_changes,
        quiet=options.quiet,
    )
    print(run_dir)


def _dry_run(recipe, run_dir, options):
    import_backend()
    from keras_deepnmt.runs.dry_run import dry_run

    result = dry_run(
        recipe,
        run_dir,
        data_dir=options.data_dir,
        prepared_dir=options.prepared,
        from_preset=options.from_preset,
        extend_vocabulary=options.extend_vocabulary,
        restart=options.restart,
        allow_changes=options.allow_changes,
        quiet=options.quiet,
    )
    print(escape_controls(result.describe()))
