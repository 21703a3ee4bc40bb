"""`deepnmt export`: exports a run for TensorFlow Serving, or as a preset."""

from typing import Literal

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_search_options,
    add_tag,
    given_search_options,
    load_translator,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.quiet_import import library_lines_removed
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt export runs/demo served/demo
deepnmt verify served/demo
deepnmt export runs/demo presets/demo --format preset --dtype float16
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt export`."""
    add_run_folder(parser)
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=str,
        help="Model folder for TensorFlow Serving. The SavedModel is written "
        "to a subfolder with the next version number: 1, 2, ... With --format "
        "preset the preset folder, which must not exist yet.",
    )
    parser.add_argument(
        "--format",
        type=Literal["saved_model", "preset"],
        default="saved_model",
        help="saved_model: text in, text out, for TensorFlow Serving, with "
        "given beginnings, phrases and maximum lengths in a signature; or "
        "preset: a Keras preset with tokenizers, search options and a model "
        "card, to publish, to load with Translator.load and to fine-tune with "
        "deepnmt train --from-preset.",
    )
    parser.add_argument(
        "--dtype",
        type=Literal["float32", "float16"],
        default="float32",
        help="Type of the weights that --format preset stores. float16 takes "
        "half of the space; the weights are rounded, so that the folder has no "
        "scores until it is evaluated.",
    )
    add_tag(parser)
    add_search_options(parser)
    add_checkpoint(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Exports the run and prints the folder written."""
    if options.format == "preset":
        _export_preset(options)
        return
    if options.dtype != "float32":
        raise UserError("--dtype needs --format preset.")
    translator = load_translator(options)
    from keras_deepnmt.serving import export

    with library_lines_removed():
        folder = export(translator, options.directory)
    print(folder)


def _export_preset(options):
    if options.tag is not None:
        raise UserError(
            "--tag cannot be given with --format preset, whose reader chooses "
            "the tag."
        )
    search_options = given_search_options(options)
    start_backend()
    from keras_deepnmt.runs.preset_folder import save_run_to_preset

    folder = save_run_to_preset(
        options.run,
        options.directory,
        checkpoint=options.checkpoint,
        dtype=options.dtype,
        **search_options,
    )
    print(folder)
