"""`deepnmt export`: writes a run for a server, an engine, or as a preset."""

import importlib.util
from typing import Literal

from jsonargparse import Namespace

from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.decoding import (
    add_checkpoint,
    add_search_options,
    add_tag,
    add_target_language,
    given_search_options,
    load_translator,
    option_name,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser, add_run_folder
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.commands.terminal.quiet_import import library_lines_removed
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt export runs/demo served/demo
deepnmt verify served/demo
deepnmt export runs/demo served/demo --dtype bfloat16
deepnmt export runs/demo presets/demo --format preset --dtype float16
deepnmt export runs/demo ctranslate2/demo --format ctranslate2 --dtype int8
deepnmt export runs/mine marian/mine --format marian-hf
deepnmt export runs/mine onnx/mine --format onnx
"""
# Of a test set, to measure BLEU and speed: enough to see what is lost.
_COMPARED = 500
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt export`."""
    add_run_folder(parser)
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="Model folder for TensorFlow Serving. The SavedModel is written "
        "to a subfolder with the next version number: 1, 2, ... With --format "
        "preset, ctranslate2, marian-hf or onnx the folder itself, which must "
        "not exist yet.",
    )
    parser.add_argument(
        "--format",
        type=Literal[
            "saved_model", "preset", "ctranslate2", "marian-hf", "onnx"
        ],
        default="saved_model",
        help="saved_model: text in, text out, for TensorFlow Serving, with "
        "given beginnings, phrases and maximum lengths in a signature; "
        "preset: a Keras preset with tokenizers, search options and a model "
        "card, to publish, to load with Translator.load and to fine-tune with "
        "deepnmt train --from-preset; onnx: for ONNX Runtime; or, of a plain "
        "Transformer, ctranslate2: for CTranslate2, or marian-hf: for MarianMT "
        "of Hugging Face's Transformers. The last three have a program that "
        "translates without this package.",
    )
    parser.add_argument(
        "--dtype",
        type=Literal["float32", "bfloat16", "float16", "int16", "int8"],
        default="float32",
        help="Type of the weights that are stored: float32, or bfloat16 with "
        "--format saved_model, float16 with preset, and float16, int16 or int8 "
        "with ctranslate2. Other types than float32 take a half or a quarter "
        "of the space and round the weights, so that a preset folder has no "
        "scores until it is evaluated.",
    )
    add_tag(parser)
    add_target_language(parser)
    add_search_options(parser)
    add_checkpoint(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Exports the run and prints the folder written."""
    if options.format == "preset":
        _export_preset(options)
        return
    if options.format in ("ctranslate2", "marian-hf", "onnx"):
        _export_for_engine(options)
        return
    # Before the model is loaded.
    if options.dtype not in ("float32", "bfloat16"):
        raise UserError(
            "--dtype must be float32 or bfloat16 with --format saved_model. "
            f"Received: {options.dtype}. Give --format preset or ctranslate2."
        )
    translator = load_translator(options)
    from keras_deepnmt.serving import export

    with library_lines_removed():
        folder = export(translator, options.directory, dtype=options.dtype)
    print(folder)


def _export_preset(options):
    for name in ("tag", "target_language"):
        if options[name] is not None:
            raise UserError(
                f"{option_name(name)} cannot be given with --format preset, "
                "whose reader chooses the tag."
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


def _export_for_engine(options):
    _check_engine_options(options)
    console = Console(options.quiet)
    translator = load_translator(options)
    from keras_deepnmt.exchange import (
        export_ctranslate2,
        export_marian,
        export_onnx,
        find_engine,
    )

    if options.format == "ctranslate2":
        found = export_ctranslate2(translator, options.directory, options.dtype)
    elif options.format == "onnx":
        with library_lines_removed():
            found = export_onnx(translator, options.directory)
    else:
        found = export_marian(translator, options.directory)
    engine = find_engine(options.directory)
    text, number = engine.compares
    if found["is_checked"]:
        console.print(
            f"{found['equal']} of {found['sentences']} golden sentences have "
            f"the same {text} as with this package; the largest difference of "
            f"a {number} is {found['largest_difference']:.1e}."
        )
    else:
        console.print(
            f"{engine.packages} are not installed, so that {engine.name} did "
            "not run it. Where they are, `deepnmt verify "
            f"{options.directory}` compares."
        )
    has_offset = translator.length_offset and translator.num_beams > 1
    if has_offset and not engine.searches_alike:
        console.print(
            f"{engine.name} divides by a power of the length, as "
            f"`length_offset` 0 does, and this run has "
            f"{translator.length_offset:g}: of several beams another one may "
            "win."
        )
    if options.dtype != "float32" and not options.quiet:
        console.print(_cost_of_type(options, translator))
    print(options.directory)


def _cost_of_type(options, translator):
    """Says what BLEU and speed the type has on the run's test set."""
    from keras_deepnmt.exchange.ctranslate2_cost import compare_with_float32
    from keras_deepnmt.runs.evaluate import Evaluation

    try:
        test = Evaluation(options.run)
    except UserError as error:
        return (
            "BLEU and speed were not compared with float32, since the test "
            f"set of {options.run} is not at hand ({error})"
        )
    cost = compare_with_float32(
        translator,
        options.directory,
        *(lines[:_COMPARED] for lines in test.texts[:2]),
        tokenize=test.scoring["tokenize"],
        lowercase=test.scoring["lowercase"],
    )
    return cost.describe(options.dtype)


def _check_engine_options(options):
    """Reports what is wrong or missing before the model is loaded."""
    if options.format == "ctranslate2":
        import ctranslate2  # noqa: F401

        return
    if options.dtype != "float32":
        converters = {
            "marian-hf": "Transformers converts the weights when it loads them "
            "(`dtype=`).",
            "onnx": "`quantize_dynamic` of onnxruntime.quantization converts "
            "the files that are written.",
        }
        raise UserError(
            f"--dtype must be float32 with --format {options.format}. "
            f"Received: {options.dtype}. {converters[options.format]}"
        )
    if options.format == "onnx":
        for name in ("tf2onnx", "onnxruntime"):
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named {name}", name=name)
