"""`deepnmt prepare`: filters and tokenizes parallel text for training."""

import argparse
import contextlib
import dataclasses

import rich.console
import rich.table
import rich.text
from jsonargparse import Namespace

from keras_deepnmt.commands.options.bounded_numbers import PositiveNumber
from keras_deepnmt.commands.options.dataclass_fields import (
    add_dataclass_options,
    as_options,
    given_options,
)
from keras_deepnmt.commands.options.downloads import add_downloads
from keras_deepnmt.commands.options.own_code import add_import
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.options.workers import add_optional_workers
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.data.bilingual_files.document import (
    TABLES,
    document_format,
)
from keras_deepnmt.data.corpora import CorpusOptions, LineReader
from keras_deepnmt.data.known_corpora.finding import find_named_corpus
from keras_deepnmt.data.manifest import describe_extension, describe_shares
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.loading import allow_code, use_code

EXAMPLE = """
deepnmt prepare --source train.en --target train.de \\
    --valid-source valid.en --valid-target valid.de --output prepared
deepnmt prepare --source a.en b.en.gz --target a.de b.de.gz --weight 1 2 \\
    --valid-pairs 1000 --test-pairs 1000 --output prepared
deepnmt prepare --source en-de.en en-fr.en --target en-de.de en-fr.fr \\
    --tag "<2de>" "<2fr>" --valid-pairs 1000 --output prepared
deepnmt prepare --file memory.tmx --source-language de --target-language en \\
    --valid-pairs 1000 --output prepared
deepnmt prepare --recipe transformer_tiny.multi30k_en_de --output prepared
"""
UNKNOWN_TOKENS = ("source_unknown_tokens", "target_unknown_tokens")
CASES = {"all_caps": "in capitals", "capitalized": "capitalized"}
CONTINUE = "Nothing was written; run the same command again."


def add_options(parser: VerbParser) -> None:
    """Adds the options of `deepnmt prepare`."""
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            nargs="+",
            default=[],
            metavar="FILE",
            help=f"Training text, {side} side: UTF-8 files, plain or "
            "compressed, one sentence per line.",
        )
    parser.add_argument(
        "--file",
        nargs="+",
        default=[],
        metavar="FILE",
        help="Files with both sides of the training text: XLIFF, TMX, TSV or "
        "JSON Lines, plain or compressed. --source-language and "
        "--target-language choose the texts of TMX.",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-column",
            metavar="NAME",
            help=f"Name of the column with the {side} side, in each --file, "
            "--valid-file and --test-file that is TSV or JSON Lines.",
        )
    parser.add_argument(
        "--weight",
        type=PositiveNumber,
        nargs="+",
        default=[],
        metavar="X",
        help="How often each sentence pair of a corpus is drawn per epoch, on "
        "average: one number for --corpus, if it is given, then one for each "
        "pair of files, then one for each --file. Default: 1.",
    )
    parser.add_argument(
        "--tag",
        nargs="+",
        default=[],
        metavar="TAG",
        help="Text before each source sentence of a corpus, such as <2de>, "
        "which is one piece of the source tokenizer: one for each corpus, in "
        'the order of --weight; "" for a corpus without. Default: none.',
    )
    parser.add_argument(
        "--corpus",
        metavar="NAME",
        help="Public corpus to use, such as multi30k_en_de, with its "
        "validation and test sets.",
    )
    for split, name in (("valid", "validation"), ("test", "test")):
        for side in ("source", "target"):
            parser.add_argument(
                f"--{split}-{side}",
                metavar="FILE",
                help=f"Text of the {name} set, {side} side.",
            )
        parser.add_argument(
            f"--{split}-file",
            metavar="FILE",
            help=f"File with both sides of the {name} set, as in --file.",
        )
        parser.add_argument(
            f"--{split}-tag",
            metavar="TAG",
            help=f"Text before each source sentence of the {name} set. "
            "Default: none, or that of --corpus for its own set.",
        )
    _add_folders(parser)
    add_optional_workers(parser)
    add_dataclass_options(parser, PrepareOptions)
    parser.add_argument(
        "--filters",
        nargs="+",
        default=argparse.SUPPRESS,  # as of the other fields
        metavar="NAME",
        help="Your own filters of training pairs: functions of a source and a "
        "target, in a file of --import, that return whether to keep the pair.",
    )
    add_import(parser)


def _add_folders(parser):
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        metavar="DIR",
        help="Folder to write the prepared data to.",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="Replace the folder if it was prepared with other options or from "
        "other text. Other folders are never replaced.",
    )
    parser.add_argument(
        "--rejected",
        metavar="FILE",
        help="File to write the pairs to that are left out: a table with tabs "
        "between the split, the corpus, the number of the line, the reason and "
        "the two texts.",
    )
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="Name or file of a recipe whose data section describes the data; "
        "the options that describe it here cannot be used then.",
    )
    add_downloads(parser)


def run(options: Namespace) -> None:
    """Prepares the data and prints how many pairs were read and kept."""
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus

    entries = []
    if options.recipe:
        recipe = _from_recipe(options)
        prepare_options, entries = recipe.data, recipe.import_
    else:
        prepare_options = _from_options(options)
    if prepare_options.filters:
        import_backend()
        allow_code(entries)
        use_code(entries)
    with _block_map(options) as map_blocks:
        manifest = prepare_corpus(
            prepare_options,
            options.output,
            data_dir=options.data_dir,
            overwrite=options.overwrite,
            rejected_file=options.rejected,
            progress=not options.quiet,
            map_blocks=map_blocks,
        )
    if not options.quiet:
        _print_counts(manifest)
    print(options.output)


def _block_map(options):
    """Opens the workers, if they are asked for."""
    if options.ray is None and options.workers is None:
        return contextlib.nullcontext()
    from keras_deepnmt.bulk.block_maps import map_by_workers

    return map_by_workers(options.ray, options.workers)


def _from_recipe(options):
    from keras_deepnmt.recipes import load_recipe

    others = ("source", "target", "file", "weight", "tag", "corpus")
    others += ("source_column", "target_column")
    others += ("valid_source", "valid_target", "valid_file", "valid_tag")
    others += ("test_source", "test_target", "test_file", "test_tag")
    given = [name for name in others if options[name] not in (None, [])]
    given += given_options(options, PrepareOptions)
    if given:
        words = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UserError(
            "`--recipe` cannot be used with the options that describe the "
            f"data. Received: {words}. Change the recipe's data section "
            "instead."
        )
    return load_recipe(options.recipe)


def _from_options(options):
    train = _train_corpora(options)
    given = given_options(options, PrepareOptions)
    named = options.corpus and find_named_corpus(options.corpus).splits
    if not named or "train" not in named:
        named = ()  # its text is that of training
    for split in ("valid", "test"):
        source, target = options[f"{split}_source"], options[f"{split}_target"]
        file, tag = options[f"{split}_file"], options[f"{split}_tag"]
        if file and (source or target):
            raise UserError(
                f"`--{split}-file` has both sides: no `--{split}-source` and "
                f"`--{split}-target`."
            )
        if file:
            given[split] = _one_file(options, file, tag or None)
        elif source or target:
            given[split] = CorpusOptions(source, target, tag=tag or None)
        elif split in named and not given.get(f"{split}_pairs"):
            tag = train[0].tag if tag is None else tag
            given[split] = CorpusOptions(name=options.corpus, tag=tag or None)
        elif tag is not None:
            raise UserError(
                f"`--{split}-tag` needs `--{split}-source`, `--{split}-file` "
                "or `--corpus`: "
                "pairs that are drawn keep the tag of their corpus."
            )
    held_out = [given[split] for split in ("valid", "test") if split in given]
    _check_columns(options, [*train, *held_out])
    try:
        return PrepareOptions(train=train, **given)
    except UserError as error:
        raise UserError(as_options(str(error), PrepareOptions)) from error


def _train_corpora(options):
    if options.corpus:
        train = [CorpusOptions(name=options.corpus)]
    else:
        train = []
    if len(options.source) != len(options.target):
        raise UserError(
            "`--source` and `--target` must have the same number of files. "
            "Received: "
            f"{len(options.source)} and {len(options.target)}"
        )
    for source, target in zip(options.source, options.target, strict=True):
        train.append(CorpusOptions(source, target))
    train += [_one_file(options, file) for file in options.file]
    if not train:
        raise UserError(
            "Use --source and --target, --file, --corpus, or --recipe."
        )
    train = _with_values(train, options, "weight", "number")
    options.tag = [tag or None for tag in options.tag]
    return _with_values(train, options, "tag", "text")


def _one_file(options, file, tag=None):
    """A corpus of one file; columns are for those of tables."""
    columns = {}
    if document_format(LineReader(file)) in TABLES:
        columns["source_column"] = options.source_column
        columns["target_column"] = options.target_column
    return CorpusOptions(file=file, tag=tag, **columns)


def _check_columns(options, corpora):
    """Refuses columns that no corpus has."""
    for name in ("source_column", "target_column"):
        column, option = options[name], f"--{name.replace('_', '-')}"
        if column is not None and all(
            getattr(c, name) is None for c in corpora
        ):
            raise UserError(
                f"`{option}` needs a `--file`, `--valid-file` or `--test-file` "
                f"that is TSV or JSON Lines. Received: {option} {column}, and "
                "no such file. Leave it out."
            )


def _with_values(train, options, name, kind):
    """Returns corpora with the values of an option, one for each corpus."""
    values = options[name]
    if not values:
        return train
    if len(values) != len(train):
        raise UserError(
            f"`--{name}` must have one {kind} per corpus. Received: "
            f"{len(values)} {kind}s for {len(train)} corpora"
        )
    return [
        dataclasses.replace(corpus, **{name: value})
        for corpus, value in zip(train, values, strict=True)
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
    for name in ("source_tokens", "target_tokens", *UNKNOWN_TOKENS):
        if name not in splits["train"]:
            continue  # the tokenizer was trained on this text
        counts = (splits[split][name] for split in filters)
        table.add_row(name.replace("_", " "), *(f"{n:,}" for n in counts))
    if "masked_pairs" in splits["train"]:
        counts = (splits[split].get("masked_pairs", 0) for split in filters)
        table.add_row("masked pairs", *(f"{n:,}" for n in counts))
    for name, count in splits["train"].get("case_examples", {}).items():
        counts = (f"{count:,}" if s == "train" else "" for s in filters)
        table.add_row(f"also shown {CASES[name]}", *counts)
    console = rich.console.Console(stderr=True)
    console.print(table)
    # Folders of earlier versions have no tags.
    if any(corpus.get("tag") is not None for corpus in manifest["corpora"]):
        console.print(_tag_table(manifest["corpora"]))
    for line in (*describe_shares(manifest), *describe_extension(manifest)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _tag_table(corpora):
    table = rich.table.Table(title="Tags")
    for name in ("split", "corpus", "tag"):
        table.add_column(name)
    table.add_column("pairs", justify="right")
    for corpus in corpora:
        values = (corpus["split"], corpus["name"], corpus["tag"] or "")
        # Not `[...]`, which rich would take for a style.
        cells = map(rich.text.Text, (*values, f"{corpus['pairs']:,}"))
        table.add_row(*cells)
    return table
