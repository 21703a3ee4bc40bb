"""`deepnmt verify`: an export still gives what it gave."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt verify served/demo
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "directory", metavar="DIR", type=str, help="Folder that export wrote."
    )


def run(options: Namespace) -> None:
    """Runs the golden sentences in a fresh process.

    Args:
        options: what the parser returned.
    """
    import_backend()
    from keras_deepnmt.serving import verify

    print(verify(options.directory))
