"""`deepnmt analyze`: figures of what a run's model has learned."""

from pathlib import Path

from jsonargparse import Namespace

from keras_deepnmt.commands.options.analyzed_sentences import (
    add_analyzed_sentences,
    analyzed_sentences,
    check_roles,
    check_sides,
    given_for_roles,
)
from keras_deepnmt.commands.options.compilation import (
    start_backend,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import (
    VerbParser,
    add_run_folder,
)
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import working_folder
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.trained import find_run_folder, output_folder

EXAMPLE = """
deepnmt analyze runs/demo
deepnmt analyze runs/hybrid --what branches attention --output figures
deepnmt analyze runs/roles --what roles --token die
"""
CONTINUE = "Run the same command again."
# Those of `analysis.ANALYSES`, which needs the backend; a test compares them.
NAMES = (
    *("attention", "similarity", "lens", "ablation", "embeddings"),
    *("aggregation", "branches", "layer_attention", "roles", "dense_layers"),
)


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt analyze`."""
    add_run_folder(parser)
    parser.add_argument(
        "--what",
        nargs="+",
        metavar="NAME",
        help=f"Analyses to make: any of {', '.join(NAMES)}. Default: all that "
        "the model's layers have.",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the figures, as PNG, SVG and CSV. Default: the folder "
        "figures in the run, for a trained model of the package in the current "
        "folder.",
    )
    add_analyzed_sentences(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Writes the figures of a run and prints the names of the files."""
    check_sides(options)
    unknown = [name for name in options.what or () if name not in NAMES]
    if unknown:
        raise UserError(
            f"--what: unknown analysis {unknown[0]}."
            f"{did_you_mean(unknown[0], NAMES)} Known are: {', '.join(NAMES)}."
        )
    if options.what and "roles" not in options.what:
        for name in given_for_roles(options):
            raise UserError(
                f"{name} needs the analysis roles. Received: --what "
                f"{' '.join(options.what)}"
            )
    # A missing package is reported before the analyses, which may take long.
    import matplotlib.figure  # noqa: F401

    folder = Path(
        options.output
        or output_folder(find_run_folder(options.run)) / "figures"
    )
    _check_folder(folder)
    console = Console(options.quiet)
    start_backend()
    from keras_deepnmt.analysis import AnalyzedRun, analyze, save_figures

    run = AnalyzedRun(options.run, **analyzed_sentences(options))
    check_roles(options, [run.model])
    figures = analyze(
        run,
        options.what,
        lambda each: console.print_stage(f"{each.name}: {each.summary}"),
    )
    for file in save_figures(figures, folder):
        print(file)


def _check_folder(folder):
    """Refuses a folder that cannot be written, before the work."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    try:
        with working_folder(existing / "figures"):
            pass
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror}). Name another "
            "folder by --output."
        ) from error
