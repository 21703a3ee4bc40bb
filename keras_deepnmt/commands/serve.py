"""`deepnmt serve`: answers requests for translations over HTTP."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeInt, PositiveInt

from keras_deepnmt.commands.options.bounded_numbers import (
    NonNegativeNumber,
    PositiveNumber,
)
from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.decoding import (
    add_search_options,
    given_search_options,
    option_name,
)
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import library_lines_removed
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.engine_folders import find_engine
from keras_deepnmt.json_files import read_json
from keras_deepnmt.trained import USUAL_MODEL, find_run_folder

if TYPE_CHECKING:
    from keras_deepnmt.server.engine import Engine

EXAMPLE = """
deepnmt serve
deepnmt serve runs/mine --languages de-en --port 8501
deepnmt serve de_en=runs/first en_de=served/second --api-keys keys.txt
"""
# While it serves, the signal ends it normally.
CONTINUE = "No request was being answered."
_NAME = re.compile(r"[\w.-]+", re.ASCII)
# The address of a web site, as browsers write it.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+|\*")
_LARGEST_PORT = 65_535


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt serve`."""
    parser.add_argument(
        "models",
        metavar="[NAME=]MODEL",
        nargs="*",
        help="Run folder, preset folder, name of a trained model (`deepnmt "
        "models --trained`), or folder of an export for TensorFlow Serving or "
        "CTranslate2, one or several. The name is that in addresses. Default: "
        f"{USUAL_MODEL}, which comes with the package, and the name of the "
        "folder.",
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        metavar="SOURCE-TARGET",
        help="Languages of each model, in their order, such as de-en. Default: "
        "those of the data that it was trained on, in all directions, or those "
        "that the name ends with, such as mine_de_en.",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="Address to answer at. 0.0.0.0 is that of all networks, from "
        "which everyone can ask unless --api-keys are needed. Default: "
        "127.0.0.1, which only programs of this machine reach.",
    )
    parser.add_argument(
        "--port",
        type=NonNegativeInt,
        default=8501,
        help="Port of HTTP; 0 for one that is free. Default: 8501, as of "
        "TensorFlow Serving.",
    )
    parser.add_argument(
        "--grpc-port",
        type=NonNegativeInt,
        metavar="PORT",
        help="Port of gRPC, such as 8500 of TensorFlow Serving; 0 for one that "
        "is free. Default: gRPC is not spoken.",
    )
    parser.add_argument(
        "--api-keys",
        metavar="FILE",
        help="File with a key in each line, of which clients must give one. "
        "Default: those in the environment variable DEEPNMT_API_KEYS, or "
        "none is needed.",
    )
    parser.add_argument(
        "--allow-origins",
        nargs="+",
        metavar="URL",
        help="Web sites whose pages may ask this server (CORS), such as "
        "https://example.org. Default: no other than its own.",
    )
    parser.add_argument(
        "--page",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Whether there is a web page at the address of the server, to "
        "try the models in a browser. Default: there is.",
    )
    _add_limits(parser)
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Whether XLA compiles runs before the first request, which takes "
        "seconds for each of up to 16 shapes and is kept for the next start. "
        "Translations are then found faster. Default: it does.",
    )
    add_search_options(parser)
    add_import(parser)


def _add_limits(parser):
    parser.add_argument(
        "--batch-size",
        type=PositiveInt,
        metavar="N",
        help="Largest number of sentences computed together. Default: as in "
        "the run's recipe.",
    )
    parser.add_argument(
        "--wait-ms",
        type=NonNegativeNumber,
        default=5.0,
        metavar="MS",
        help="Milliseconds for which a batch waits for more sentences.",
    )
    parser.add_argument(
        "--max-bytes",
        type=PositiveInt,
        default=1_000_000,
        metavar="N",
        help="Largest body of a request.",
    )
    parser.add_argument(
        "--max-sentences",
        type=PositiveInt,
        default=256,
        metavar="N",
        help="Largest number of sentences of a request.",
    )
    parser.add_argument(
        "--max-tokens",
        type=PositiveInt,
        default=256,
        metavar="N",
        help="Largest number of tokens of a sentence, its end included.",
    )
    parser.add_argument(
        "--max-waiting",
        type=PositiveInt,
        default=4096,
        metavar="N",
        help="Largest number of sentences that wait for a model; a request "
        "for which there is no room is told when to come back.",
    )
    parser.add_argument(
        "--timeout",
        type=PositiveNumber,
        default=60.0,
        metavar="SECONDS",
        help="Seconds after which a request fails, and for which requests are "
        "still answered when the server is stopped.",
    )


def run(options: Namespace) -> None:
    """Serves until SIGTERM or Ctrl-C."""
    # A missing package is reported before a model is loaded.
    import fastapi  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401

    if options.grpc_port is not None:
        import tensorflow_serving  # noqa: F401

    from keras_deepnmt.server.api_keys import read_api_keys
    from keras_deepnmt.server.process import (
        is_loopback,
        open_socket,
        run_server,
    )
    from keras_deepnmt.server.request_limits import RequestLimits

    limits = _limits(options, RequestLimits)
    origins = _origins(options.allow_origins or ())
    given = given_search_options(options)
    keys = read_api_keys(options.api_keys)
    named = _named_folders(options.models or [USUAL_MODEL])
    _check_takes_options(named, given)
    is_own = any(find_engine(folder) is None for folder in named.values())
    # The messages of gRPC are TensorFlow's, too.
    if is_own or options.grpc_port is not None:
        # What comes now imports the backend, which logs to stderr otherwise.
        # Searches of several threads on one heap would leave ever more holes in
        # it, and are not faster with memory that is kept.
        start_backend(keep_memory=False)
    from keras_deepnmt.server.access import Access
    from keras_deepnmt.server.http_app import make_app
    from keras_deepnmt.server.json_log import json_log, log_event
    from keras_deepnmt.server.metrics import Metrics
    from keras_deepnmt.server.served_models import ServedModels
    from keras_deepnmt.server.version_watch import VersionWatch

    directions = _directions(named, options.languages)
    metrics = Metrics()
    with open_socket(options.host, options.port) as opened:
        with library_lines_removed():
            made = {
                name: _model(
                    name, folder, directions[name], options, limits, metrics
                )
                for name, folder in named.items()
            }
        models = ServedModels(list(made.values()))
        app = make_app(
            models,
            limits,
            Access(keys),
            metrics,
            origins,
            options.page,
        )
        with json_log(options.quiet):
            if not is_loopback(options.host) and not len(keys):
                log_event("open_to_all", 30, host=options.host)
            watch = VersionWatch(
                {
                    made[name]: folder
                    for name, folder in named.items()
                    if is_export(folder) and not is_version(folder)
                }
            )
            try:
                grpc_server = None
                if options.grpc_port is not None:
                    grpc_server = _grpc_server(
                        models, limits, keys, metrics, options
                    )
                run_server(app, opened, models, limits.timeout_s, grpc_server)
            finally:
                watch.stop()
                models.close(drop=True)


def _limits(options, kind):
    for name in ("port", "grpc_port"):
        if (options[name] or 0) > _LARGEST_PORT:
            raise UserError(
                f"`--{name.replace('_', '-')}` must be at most "
                f"{_LARGEST_PORT:,}. Received: {options[name]}"
            )
    if options.max_waiting < options.max_sentences:
        raise UserError(
            "`--max-waiting` must be at least `--max-sentences`, or the "
            f"largest requests never have room. Received: "
            f"{options.max_waiting} and {options.max_sentences}"
        )
    return kind(
        options.max_bytes,
        options.max_sentences,
        options.max_tokens,
        options.max_waiting,
        options.timeout,
    )


def _origins(given):
    """Returns addresses of web sites, without the slash of a person."""
    origins = [address.lower().removesuffix("/") for address in given]
    for origin, address in zip(origins, given, strict=True):
        if not _ORIGIN.fullmatch(origin):
            raise UserError(
                "`--allow-origins` must be addresses of web sites without a "
                "path, such as https://example.org, or * for all. Received: "
                f"{address}"
            )
    return origins


def _named_folders(words: list[str]) -> dict[str, Path]:
    """Returns the folder of each model by its name."""
    named: dict[str, Path] = {}
    for word in words:
        name, _, path = word.partition("=")
        if not path or Path(word).exists():
            path = word
            folder = Path(word).resolve()
            # Of an export the model folder, not that of a version.
            name = folder.parent.name if is_version(folder) else folder.name
        if not _NAME.fullmatch(name):
            raise UserError(
                "The name of a model must have only letters, digits and the "
                f"characters . _ and -. Received: {name!r}. Give a name: "
                f"NAME={path}"
            )
        if name in named:
            raise UserError(
                f"Each model must have a name of its own. Received: {name} "
                f"for {named[name]} and {path}. Give a name: NAME={path}"
            )
        named[name] = _known_folder(path)
    return named


def _known_folder(path):
    engine = find_engine(path)
    if engine is None:
        return find_run_folder(path)
    if engine.format != "ctranslate2":
        raise UserError(
            f"{path}: is a folder for {engine.name}, which is not served. "
            "Serve the run itself, or an export for TensorFlow Serving or "
            "CTranslate2."
        )
    import ctranslate2  # noqa: F401

    return Path(path)


def _check_takes_options(named, given):
    for name, folder in named.items():
        if given and (is_export(folder) or find_engine(folder) is not None):
            raise UserError(
                f"`{option_name(next(iter(given)))}` is for runs and trained "
                f"models. Received: the export {folder} as {name}, which has "
                "the search of its export. Serve its run, or export the run "
                "again with this option."
            )


def _directions(named, given):
    """Returns the languages of each model with their tags, by its name."""
    if given is not None and len(given) != len(named):
        raise UserError(
            "`--languages` must have one pair for each model. Received: "
            f"{len(given)} for {len(named)}"
        )
    return {
        name: _directions_of(name, folder, given and given[place])
        for place, (name, folder) in enumerate(named.items())
    }


def _directions_of(name, folder, given):
    from keras_deepnmt.data.directions import Direction, Directions
    from keras_deepnmt.server.served_models import (
        languages_in_name,
        pair_of_languages,
    )

    known = _known_directions(folder)
    if given is not None:
        pair = pair_of_languages(given)
        tags = [one.tag for one in known if one[:2] == pair]
        learned = Directions(one._asdict() for one in known)
        if not tags and pair[1] in learned.targets:
            # A pair of languages that no training corpus had.
            tags = [learned.tag_of(pair[1])]
        return [Direction(*pair, tags[0] if tags else None)]
    if known:
        return known
    pair = languages_in_name(name) or languages_in_name(folder.name)
    if pair is None:
        raise UserError(
            f"The languages of the model {name} are not in its name. Give "
            "them: --languages de-en"
        )
    return [Direction(*pair, None)]


def _known_directions(folder):
    """Lists those that a run or an export has recorded, each pair once.

    A pair that has a corpus without a tag needs none, as in `translate`;
    otherwise it has the tag of its first corpus.
    """
    found: dict[tuple, tuple] = {}
    for one in _recorded_directions(folder):
        if one[:2] not in found or one.tag is None:
            found[one[:2]] = one
    return list(found.values())


def _recorded_directions(folder, number=None):
    """Lists those of a run, or of a version of an export, with all tags."""
    from keras_deepnmt.data.directions import Directions

    if is_export(folder):
        from keras_deepnmt.serving.golden import EXPORT_FILE

        if not is_version(folder):
            if number is None:
                number = _last_version(folder)
            folder = folder / str(number)
        described = read_json(folder / EXPORT_FILE, dict, "Export it again.")
    elif find_engine(folder) is not None:
        return []
    else:
        from keras_deepnmt.translator.loading import read_summary

        described = read_summary(folder)
    return Directions(described.get("directions", ())).known


def _grpc_server(models, limits, keys, metrics, options):
    # gRPC's C library logs to standard error by itself.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from keras_deepnmt.server.grpc_services import GrpcServer

    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"{host}:{options.grpc_port}"
    return GrpcServer(models, limits, keys, metrics, address)


def _model(name, folder, directions, options, limits, metrics):
    from keras_deepnmt.server.served_models import ServedModel, Version

    def make_version(number):
        if is_export(folder) and not is_version(folder):
            recorded = _recorded_directions(folder, number)
            _check_tags(folder / str(number), recorded, known)
        return Version(
            number,
            _engine(folder, number, options),
            limits,
            options.wait_ms / 1000,
            metrics.of_model(name),
        )

    # Others are those of a name or of `--languages` alone.
    targets = {one.target for one in _recorded_directions(folder)}
    known = [one for one in directions if one.target in targets]
    number = 1
    if is_version(folder):
        resolved = folder.resolve().name
        number = int(resolved) if resolved.isdecimal() else 1
    elif is_export(folder):
        number = _last_version(folder)
    return ServedModel(name, directions, make_version, number)


def _check_tags(version_dir, recorded, served):
    """Refuses a version that does not know a tag that the server writes.

    `recorded` are its directions; where there are none, it has no tags. A pair
    of languages that is not among them has the tags of its target.
    """
    for direction in served:
        same = [one for one in recorded if one[:2] == direction[:2]]
        same = same or [one for one in recorded if one[1] == direction[1]]
        tags = {one.tag for one in same} if recorded else {None}
        if direction.tag not in tags:
            listed = ", ".join(tag or "no tag" for tag in tags)
            raise UserError(
                f"{version_dir}: must have the tag with which the server "
                f"translates from {direction.source} to {direction.target}, "
                f"{direction.tag or 'none'}. Received: "
                f"{listed or 'other languages'}. Start the server again to "
                "serve this version."
            )


def _last_version(folder):
    from keras_deepnmt.serving.verification import numbered_versions

    return max(numbered_versions(folder))


def _engine(folder: Path, number: int, options: Namespace) -> "Engine":
    if is_export(folder):
        from keras_deepnmt.server.export_engine import ExportEngine

        if not is_version(folder):
            folder = folder / str(number)
        return ExportEngine(folder, options.batch_size)

    if find_engine(folder) is not None:
        from keras_deepnmt.server.ctranslate2_engine import CTranslate2Engine

        return CTranslate2Engine(folder, options.batch_size)
    from keras_deepnmt.server.translator_engine import TranslatorEngine
    from keras_deepnmt.translator import Translator

    translator = Translator.load(
        folder,
        batch_size=options.batch_size,
        compiled=options.compile,
        **given_search_options(options),
    )
    tasks = _page_tasks() if options.page else None
    return TranslatorEngine(translator, options.max_tokens, tasks)


def _page_tasks():
    from keras_deepnmt.analysis.inspection import Inspector
    from keras_deepnmt.documents.document_lines import LineTranslator

    return {"inspect": Inspector(), "lines": LineTranslator()}


def is_version(folder: Path) -> bool:
    """Whether a folder is one version of an export."""
    return (folder / "saved_model.pb").is_file()


def is_export(folder: Path) -> bool:
    """Whether a folder is a version of an export, or one with versions."""
    return is_version(folder) or any(
        file.parent.name.isdecimal() for file in folder.glob("*/saved_model.pb")
    )
