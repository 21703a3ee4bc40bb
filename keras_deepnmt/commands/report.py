"""`deepnmt report`: one HTML page about one or several runs."""

from pathlib import Path

from jsonargparse import Namespace

from keras_deepnmt.commands.options.analyzed_sentences import (
    add_analyzed_sentences,
    analyzed_sentences,
    check_roles,
    check_sides,
)
from keras_deepnmt.commands.options.compilation import (
    start_backend,
)
from keras_deepnmt.commands.options.given_lines import (
    GivenLines,
    add_given_lines,
)
from keras_deepnmt.commands.options.output_file import open_output
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.scoring import add_resamples
from keras_deepnmt.commands.terminal.console import Console
from keras_deepnmt.errors import UserError
from keras_deepnmt.trained import find_run_folder, output_folder

EXAMPLE = """
deepnmt report runs/demo
deepnmt report runs/plain runs/hybrid --output report.html
"""
CONTINUE = "No report was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt report`."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="Folders of finished runs. Other recipes are compared with that "
        "of the first one, and runs of one recipe with different seeds summed "
        "up.",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="HTML file to write. Default: report.html in the first run, for a "
        "trained model of the package in the current folder.",
    )
    add_analyzed_sentences(parser)
    add_given_lines(parser)
    add_resamples(parser)
    add_import(parser)


def run(options: Namespace) -> None:
    """Writes the page and prints the name of its file."""
    check_sides(options)
    repeated = {name for name in options.runs if options.runs.count(name) > 1}
    if repeated:
        raise UserError(f"{', '.join(sorted(repeated))}: given more than once.")
    output = Path(
        options.output
        or output_folder(find_run_folder(options.runs[0])) / "report.html"
    )
    console = Console(options.quiet)
    lines = GivenLines(options)
    asked = lines.read()
    # Before the work, so that a file that cannot be written costs none.
    with open_output(str(output)) as file:
        start_backend()
        from keras_deepnmt.analysis import report
        from keras_deepnmt.runs.checkpoints import load_model

        check_roles(options, map(load_model, options.runs))
        page = report(
            options.runs,
            num_resamples=options.resamples,
            on_stage=console.print_stage,
            on_loaded=lines.check,
            **asked,
            **analyzed_sentences(options),
        )
        file.write(page)
    print(output)
