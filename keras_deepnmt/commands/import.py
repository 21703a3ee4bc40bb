"""`deepnmt import`: writes a model of another toolkit as a preset folder."""

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend

EXAMPLE = """
deepnmt import opus-mt-de-en presets/opus-mt-de-en
deepnmt translate presets/opus-mt-de-en
deepnmt train mine.yaml --from-preset presets/opus-mt-de-en
"""
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt import`."""
    parser.add_argument(
        "path",
        metavar="PATH",
        help="The model, a file or folder of another toolkit, such as a copy "
        "of one of OPUS-MT's models.",
    )
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="Preset folder to write; it must not exist yet.",
    )
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="Format of the model, such as marian-hf. By default it is "
        "recognized.",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-tokenizer",
            metavar="FILE",
            help="SentencePiece model, or codes of subword-nmt, of the "
            f"{side} side. By default it is the file that comes with the "
            "model.",
        )


def run(options: Namespace) -> None:
    """Imports the model and prints the folder written."""
    import_backend()
    from keras_deepnmt.exchange import import_model

    print(
        import_model(
            options.path,
            options.directory,
            options.format,
            options.source_tokenizer,
            options.target_tokenizer,
        )
    )
