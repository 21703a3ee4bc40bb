"""The options of every command that translates."""

import argparse
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from keras_deepnmt.commands.options.bounded_numbers import PositiveNumber
from keras_deepnmt.commands.options.compilation import start_backend
from keras_deepnmt.commands.options.dataclass_fields import (
    argument_help,
    as_options,
    placeholder,
)
from keras_deepnmt.commands.options.document import languages_of_run
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.trained import find_run_folder

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def add_decoding_options(parser: VerbParser) -> None:
    """Adds the options of a search and of its batches."""
    add_search_options(parser)
    add_batch_size(parser)


def add_search_options(parser: VerbParser) -> None:
    """Adds an option for each field of `SearchOptions`.

    None of them has a default: an option that is not given is the run's.
    """
    descriptions = argument_help(SearchOptions)
    for name in SearchOptions.names():
        hint = type(getattr(SearchOptions, name))
        parser.add_argument(
            option_name(name),
            type=hint,
            help=f"{as_options(descriptions[name], SearchOptions)} Default: "
            "as in the run's recipe.",
            **placeholder(hint, descriptions[name]),
        )


def add_ensemble(parser: VerbParser) -> None:
    """Adds the run folders, and how several models translate together."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="Run folder written by `deepnmt train`, preset folder written by "
        "`deepnmt export --format preset`, or name of a trained model "
        "(`deepnmt models --trained`). Several models with the same "
        "tokenizers translate together, by the mean of their probabilities.",
    )
    parser.add_argument(
        "--ensemble-mean",
        type=Literal["arithmetic", "geometric"],
        help="How several models are averaged: their probabilities "
        "(arithmetic) or their log-probabilities (geometric). Default: "
        "arithmetic.",
    )
    parser.add_argument(
        "--ensemble-weights",
        type=PositiveNumber,
        nargs="+",
        metavar="W",
        help="Weights of several models, in their order; only the ratios "
        "count. Default: equal weights.",
    )


def add_batch_size(parser: VerbParser) -> None:
    """Adds `--batch-size` and `--batch-tokens`."""
    parser.add_argument(
        "--batch-size",
        type=PositiveInt,
        metavar="N",
        help="Largest number of sentences computed together. Default: as in "
        "the run's recipe.",
    )
    parser.add_argument(
        "--batch-tokens",
        type=PositiveInt,
        metavar="N",
        help="Largest number of tokens computed together, padding included; "
        "a longer sentence is computed alone. Default: as in the run's recipe.",
    )


def add_checkpoint(parser: VerbParser) -> None:
    """Adds `--checkpoint`."""
    parser.add_argument(
        "--checkpoint",
        type=_checkpoint,
        metavar="latest|best|STEP",
        help="Checkpoint to use instead of the final model, also of an "
        "unfinished run: latest, best (that of the best validation) or "
        "the number of an update. Default: the final model.",
    )


def add_tag(parser: VerbParser) -> None:
    """Adds `--tag`."""
    parser.add_argument(
        "--tag",
        metavar="TAG",
        help="Text to put before each source, as before those that the model "
        "was trained on, such as <2de>. Default: none.",
    )


def add_target_language(parser: VerbParser) -> None:
    """Adds `--target-language`."""
    parser.add_argument(
        "--target-language",
        metavar="CODE",
        help="Code of the language to translate into, such as de, of a model "
        "that has learned several, in place of --tag. Default: that of --tag.",
    )


def check_tag_source(tag: str | None, source: str | None) -> None:
    """Refuses a tag without a text that it can stand before."""
    if tag is not None and not source:
        raise UserError(
            "--tag needs --source: the run's own text has the tags of its "
            "corpora already."
        )


def check_num_hypotheses(options: Namespace) -> None:
    """Refuses more hypotheses than the beams that were given."""
    if options.num_hypotheses > (options.num_beams or options.num_hypotheses):
        raise UserError(
            "`--num-hypotheses` must not exceed `--num-beams`. Received: "
            f"{options.num_hypotheses} and {options.num_beams}"
        )


def add_shortlist(parser: VerbParser) -> None:
    """Adds `--shortlist`."""
    parser.add_argument(
        "--shortlist",
        nargs="?",
        const="",
        metavar="FILE",
        help="Search each batch with the target tokens that its source tokens "
        "are likely to be translated by, which is faster: those in a file that "
        "`deepnmt prepare` wrote, or in the run's copy of it. Default: all "
        "tokens.",
    )


def option_name(name: str) -> str:
    """Returns the command-line option of a field: `--num-beams`."""
    return f"--{name.replace('_', '-')}"


def given_search_options(options: Namespace) -> dict[str, Any]:
    """Returns the search options that were given on the command line."""
    given = {
        name: options.get(name)
        for name in SearchOptions.names()
        if options.get(name) is not None
    }
    try:
        # The run has the other options. With one beam, any groups are right.
        SearchOptions(**{"num_beams": 1, **given})
    except ValueError as error:
        message = str(error)
        for name in given:
            message = message.replace(f"`{name}`", f"`{option_name(name)}`")
            message = message.replace(f"{name}=", "")
        raise UserError(message) from error
    return given


def given_decoding_options(options: Namespace) -> dict[str, Any]:
    """Returns the search options, sizes of batches and tag that were given."""
    given = given_search_options(options)
    for name in ("batch_size", "batch_tokens", "tag", "target_language"):
        if options.get(name) is not None:
            given[name] = options[name]
    return given


def _checkpoint(text: str) -> str:
    if text not in ("latest", "best") and not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"expected latest, best or the number of a step. Received: {text}"
        )
    return text


def load_translator(
    options: Namespace, has_languages: bool = False
) -> "Translator":
    """Loads the runs named on the command line, with the options given.

    Several models are joined to one translator. `has_languages` says that
    `--target-language` is also that of a document, and need not be known to a
    model of one language; by default both are those of the recipe.
    """
    given = given_decoding_options(options)
    language = given.pop("target_language", None) if has_languages else None
    start_backend()
    folders = options.get("runs") or [options.run]
    if options.get("shortlist") is not None:
        given["shortlists"] = _load_shortlists(options.shortlist, folders[0])
    for name in ("ensemble_mean", "ensemble_weights"):
        if options.get(name) and len(folders) == 1:
            raise UserError(
                f"{option_name(name)} needs several runs. Received: "
                f"{folders[0]}. Leave it out, or name more runs."
            )
    checkpoint = options.get("checkpoint")
    if has_languages and "tag" not in given:
        from keras_deepnmt.runs.checkpoints import open_run

        targets = open_run(folders[0], checkpoint).directions.targets
        if language is None:
            # That of the document, where the command names none.
            default = languages_of_run(folders[0])[1]
            language = default if default in targets else None
        if language is not None and len(targets) > 1:
            given["target_language"] = language
    translators = [load_run(folder, checkpoint, given) for folder in folders]
    if len(translators) == 1:
        return translators[0]
    from keras_deepnmt.translator import join_translators

    return join_translators(
        translators,
        options.ensemble_weights,
        options.ensemble_mean or "arithmetic",
    )


def _load_shortlists(file, folder):
    from keras_deepnmt.data.shortlists import SHORTLIST_FILE, Shortlists

    if file:
        return Shortlists.load(file)
    own = find_run_folder(folder) / SHORTLIST_FILE
    if not own.is_file():
        raise UserError(
            f"--shortlist: {folder} has no {SHORTLIST_FILE}. Prepare its "
            "corpus with `data.shortlist_targets=50` into a new folder, and "
            f"name that folder's {SHORTLIST_FILE} here."
        )
    return Shortlists.load(own)


def load_run(
    folder: str, checkpoint: str | None, given: dict[str, Any]
) -> "Translator":
    """Loads one run, or a checkpoint of it, with the options given."""
    from keras_deepnmt.translator import Translator

    if "tag" in given and "target_language" in given:
        raise UserError(
            "--tag and --target-language both choose the tag of the sources: "
            f"give one of them. Received: {given['tag']} and "
            f"{given['target_language']}"
        )

    run = folder
    if checkpoint is not None:
        from keras_deepnmt.runs.checkpoints import open_run

        run = open_run(folder, checkpoint)
    try:
        return Translator.load(run, **given)
    except UserError as error:
        message = str(error)
        if not message.startswith(("`tag`", "`target_language`")):
            raise
        for name in ("tag", "target_language"):
            message = message.replace(f"`{name}`", f"`{option_name(name)}`")
        raise UserError(message.replace("tag=", "--tag ", 1)) from error
