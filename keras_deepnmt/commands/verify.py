"""`deepnmt verify`: compares an export's output with the recorded output."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt verify served/demo
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt verify`."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=str,
        help="Model folder written by `deepnmt export` (its newest version is "
        "checked), folder of one version, or folder for another engine. It "
        "must still give the translations and scores that were recorded during "
        "the export.",
    )


def run(options: Namespace) -> None:
    """Runs the golden sentences in a new process and prints the result."""
    import_backend()
    from keras_deepnmt.exchange import find_engine, verify_engine_folder

    engine = find_engine(options.directory)
    if engine is not None:
        found = verify_engine_folder(options.directory)
        print(
            f"{options.directory}: {found['sentences']} golden sentences run "
            f"in a process with only {engine.packages}: equal strings, largest "
            "difference of a log-probability "
            f"{found['largest_difference']:.1e}."
        )
        return
    from keras_deepnmt.serving import verify

    print(verify(options.directory))
