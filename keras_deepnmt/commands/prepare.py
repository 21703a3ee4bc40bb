"""`deepnmt prepare`: text files to a folder ready for training."""

import dataclasses

import rich.console
import rich.table
from jsonargparse import Namespace
from jsonargparse.typing import PositiveFloat

from keras_deepnmt.commands.options.dataclass_fields import (
    add_dataclass_options,
    given_options,
)
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.prepare_options import PrepareOptions
from keras_deepnmt.errors import UserError

EXAMPLE = """
deepnmt prepare --source train.en --target train.de \\
    --valid-source valid.en --valid-target valid.de --output prepared
deepnmt prepare --source a.en b.en.gz --target a.de b.de.gz --weight 1 2 \\
    --valid-pairs 1000 --test-pairs 1000 --output prepared
deepnmt prepare --recipe transformer_tiny.multi30k_en_de --output prepared
"""
CONTINUE = "Nothing was left behind; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds this verb's options.

    Args:
        parser: the verb's parser.
    """
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            type=str,
            nargs="+",
            default=[],
            metavar="FILE",
            help=f"Training text, {side} side: UTF-8, plain or gzipped.",
        )
    parser.add_argument(
        "--weight",
        type=PositiveFloat,
        nargs="+",
        default=[],
        help="How often the pairs of each corpus are drawn; default 1.",
    )
    parser.add_argument(
        "--corpus",
        type=str,
        help="A corpus known by name, such as multi30k_en_de, with its "
        "validation and test sets.",
    )
    for split in ("valid", "test"):
        for side in ("source", "target"):
            parser.add_argument(
                f"--{split}-{side}",
                type=str,
                metavar="FILE",
                help=f"Text of the {split} set, {side} side.",
            )
    parser.add_argument(
        "--output", type=str, required=True, help="Folder to write."
    )
    parser.add_argument(
        "--recipe",
        type=str,
        help="Recipe (name or file) whose data section to prepare.",
    )
    parser.add_argument(
        "--data-dir",
        type=str,
        help="Folder that holds the named corpora; else they are fetched.",
    )
    add_dataclass_options(parser, PrepareOptions)


def run(options: Namespace) -> None:
    """Prepares, and prints what was read, left out and kept.

    Args:
        options: what the parser returned.
    """
    from keras_deepnmt.data.prepare import prepare_corpus

    if options.recipe:
        prepare_options = _from_recipe(options)
    else:
        prepare_options = _from_options(options)
    manifest = prepare_corpus(
        prepare_options,
        options.output,
        data_dir=options.data_dir,
        progress=not options.quiet,
    )
    if not options.quiet:
        _print_counts(manifest)
    print(options.output)


def _from_recipe(options):
    from keras_deepnmt.recipes import load_recipe

    others = ("source", "target", "weight", "corpus")
    others += ("valid_source", "valid_target", "test_source", "test_target")
    given = [name for name in others if options.get(name)]
    given += given_options(options, PrepareOptions)
    if given:
        words = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UserError(
            "With `--recipe` the recipe says what is prepared; change it there."
            f" Received: {words}"
        )
    return load_recipe(options.recipe).data


def _from_options(options):
    train = _train_corpora(options)
    given = given_options(options, PrepareOptions)
    for split in ("valid", "test"):
        source, target = options[f"{split}_source"], options[f"{split}_target"]
        if source or target:
            given[split] = CorpusOptions(source, target)
        elif options.corpus and not given.get(f"{split}_pairs"):
            given[split] = CorpusOptions(name=options.corpus)
    return PrepareOptions(train=train, **given)


def _train_corpora(options):
    if options.corpus:
        train = [CorpusOptions(name=options.corpus)]
    else:
        train = []
    if len(options.source) != len(options.target):
        raise UserError(
            "`--source` and `--target` must name as many files. Received: "
            f"{len(options.source)} and {len(options.target)}"
        )
    for source, target in zip(options.source, options.target, strict=True):
        train.append(CorpusOptions(source, target))
    if not train:
        raise UserError("Give --source and --target, or --corpus, or --recipe.")
    if not options.weight:
        return train
    if len(options.weight) != len(train):
        raise UserError(
            "`--weight` must give one number per corpus. Received: "
            f"{len(options.weight)} numbers for {len(train)} corpora"
        )
    return [
        dataclasses.replace(corpus, weight=weight)
        for corpus, weight in zip(train, options.weight, strict=True)
    ]


def _print_counts(manifest):
    filters, splits = manifest["filters"], manifest["splits"]
    table = rich.table.Table(title="Pairs and tokens")
    table.add_column("")
    for split in filters:
        table.add_column(split, justify="right")
    reasons = dict.fromkeys(n for counts in filters.values() for n in counts)
    for name in reasons:
        counts = (filters[split].get(name, 0) for split in filters)
        table.add_row(name.replace("_", " "), *(f"{n:,}" for n in counts))
    for name in ("source_tokens", "target_tokens"):
        counts = (splits[split][name] for split in filters)
        table.add_row(name.replace("_", " "), *(f"{n:,}" for n in counts))
    rich.console.Console(stderr=True).print(table)
