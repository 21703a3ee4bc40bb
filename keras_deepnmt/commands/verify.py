"""`deepnmt verify`: compares an export's output with the recorded output."""

import os

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt verify served/demo
deepnmt verify served/demo http://localhost:8501/v1/models/demo
"""
CONTINUE = "Nothing was changed."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt verify`."""
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="Model folder written by `deepnmt export` (its newest version is "
        "checked), folder of one version, or folder for another engine. It "
        "must still give the translations and scores that were recorded during "
        "the export.",
    )
    parser.add_argument(
        "endpoint",
        metavar="URL",
        nargs="?",
        help="Address of a model on a server, such as "
        "http://localhost:8501/v1/models/demo or grpc://localhost:8500/demo, "
        "which must give them. A key that the server asks for is read from the "
        "environment variable DEEPNMT_API_KEY. Default: a new process loads "
        "the export.",
    )


def run(options: Namespace) -> None:
    """Runs the golden sentences in a new process and prints the result."""
    import_backend()
    from keras_deepnmt.exchange import find_engine, verify_engine_folder

    engine = find_engine(options.directory)
    if options.endpoint is not None:
        if engine is not None:
            raise UserError(
                f"{options.directory}: with a URL, DIR must be an export for "
                f"TensorFlow Serving. Received: a folder for {engine.name}. "
                "Leave out the URL, or export with `--format saved_model`."
            )
        _verify_endpoint(options.directory, options.endpoint)
        return
    if engine is not None:
        found = verify_engine_folder(options.directory)
        print(
            f"{options.directory}: {found['sentences']} golden sentences run "
            f"in a process with only {engine.packages}: equal strings, largest "
            f"difference of a {engine.compares[1]} "
            f"{found['largest_difference']:.1e}."
        )
        return
    from keras_deepnmt.serving import verify

    print(verify(options.directory))


def _verify_endpoint(directory, url):
    from keras_deepnmt.serving import GrpcClient, RestClient, verify_endpoint

    kind = GrpcClient if url.startswith("grpc:") else RestClient
    client = kind(url, api_key=os.environ.get("DEEPNMT_API_KEY"))
    found = verify_endpoint(directory, client)
    print(
        f"{url}: {found.num_sentences} golden sentences of "
        f"{found.directory}: equal strings, largest difference of a score "
        f"{found.largest_difference:.1e}."
    )
