"""Trains and scores the models of the quality table.

    python benchmarks/quality/table.py --corpus multi30k --seeds 3
    python benchmarks/quality/table.py --corpus demo --presets conv_seq2seq_tiny
    python benchmarks/quality/table.py --corpus iwslt14 --list

Each row is a bundled recipe, trained with a seed and scored on its test set:
`<preset>.multi30k_en_de`, `<preset>.demo_de_en` or `<preset>.iwslt14_de_en`.
Rows that are in the CSV file already, with the same recipe, are skipped.
After an interrupt or a kill the same command continues where it was: a run at
its last checkpoint, and a trained model is only scored.

The work folder (`--folder`) has the prepared corpora, one for all rows with
the same data and segmentation. Each row has a folder with its run, its
translations, a preset folder with a model card, and a claim, so that several
processes, also on several machines that share the work folder, never train the
same row. To train elsewhere, prepare the corpora here (`--prepare`), copy the
work folder there, and later copy it back: `--no-train` adds the rows of
finished runs.

A row has sacreBLEU's 95 % bootstrap interval and, when the plain model's row of
the same seed is there, the p-value of the paired approximate randomization test
against its translations. Rows are written to `table.csv` in the work folder;
beside it, `sentence_counts` has the counts that BLEU sums for each sentence, so
that rows of other machines and days can be tested without the translations. To
publish both, give `--output benchmarks/quality/results/table.csv` and run
`benchmarks/write_tables.py`.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from subprocess import CalledProcessError

sys.path.insert(0, str(Path(__file__).parents[2]))

# Modules that use Keras are imported in functions, after the choice of backend.
from benchmarks.quality.rows.row_list import (
    CORPORA,
    presets_of,
    table_rows,
)
from benchmarks.shared.result_rows import REPOSITORY, read_rows

PUBLISHED = Path(__file__).parent / "results" / "table.csv"


def measure_missing(folders, output, train, run_command):
    """Trains, scores and adds the rows that are missing in a CSV file.

    Args:
        folders: the `RowFolder`s of all wanted rows.
        output: the CSV file.
        train: whether models are trained; if not, only runs that have finished
            are scored.
        run_command: see `RowFolder.measure`; it also gets the claim.

    Returns:
        The rows that failed, with the reasons.
    """
    from benchmarks.quality.rows.row_file import compare_with_plain

    failed = {}
    measured = True
    # Again, because others may have given up a row that they had claimed.
    while measured:
        measured = False
        for folder in folders:
            if folder.key in failed or not _is_missing(folder, output):
                continue
            if not (train or (folder.run / "run.json").is_file()):
                continue
            try:
                measured |= _measure_if_free(folder, output, run_command)
            except (ValueError, OSError, CalledProcessError) as error:
                failed[folder.key] = f"{folder.row}: {error}"
                print(f"{folder.row}: failed: {error}", flush=True)
    if output.exists():
        compare_with_plain(output)
    return list(failed.values())


def _is_missing(folder, output):
    """Whether a row has a recipe but is not in the CSV file."""
    from benchmarks.quality.rows.row_folder import row_key

    if folder.recipe_sha256 is None:
        return False
    return folder.key not in map(row_key, read_rows(output))


def _measure_if_free(folder, output, run_command):
    """Measures a row that no other process has; returns whether it did."""
    from benchmarks.quality.rows.row_file import add_row, compare_with_plain
    from benchmarks.quality.rows.sentence_counts import (
        counts_file,
        write_counts,
    )

    with folder.claimed() as claim:
        # Another process may have just added the row.
        if claim is None or not _is_missing(folder, output):
            return False
        print(f"{folder.row}: {folder.run}", flush=True)
        row = folder.measure(
            lambda arguments: run_command(arguments, claim=claim)
        )
        write_counts(counts_file(output, row), folder.sentence_counts())
        add_row(output, row)
    compare_with_plain(output)
    print(_describe(row), flush=True)
    return True


def _describe(row):
    text = (
        f"{row['recipe']}, seed {row['seed']}: BLEU {row['bleu']} ± "
        f"{row['bleu_interval']} after {row['updates']:,} updates, "
        f"{row['training_minutes']} minutes"
    )
    published = [
        other
        for other in read_rows(PUBLISHED)
        if other["recipe"] == row["recipe"]
        and other["seed"] == str(row["seed"])
    ]
    if not published:
        return text
    last = published[-1]
    same = last["recipe_sha256"] == row["recipe_sha256"]
    recipe = "" if same else ", with another version of the recipe"
    return f"{text}. Published: {last['bleu']} ({last['commit']}{recipe})."


def describe_rows(folders, output):
    """Describes in a line for each row whether it is there or how far it is."""
    from benchmarks.quality.rows.row_folder import row_key
    from keras_deepnmt.evaluation import format_p_value

    rows = {row_key(row): row for row in read_rows(output)}
    lines = []
    for folder in folders:
        row = rows.get(folder.key)
        if row is None:
            state = folder.state()
        else:
            state = f"BLEU {row['bleu']} ± {row['bleu_interval']}"
            if row["p_value"]:
                state += f", {format_p_value(float(row['p_value']), 'p')}"
        lines.append(f"{folder.row}: {state}")
    return lines


def make_parser():
    """Makes the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", choices=CORPORA, required=True)
    parser.add_argument(
        "--presets",
        nargs="+",
        metavar="NAME",
        help="default: all presets of this corpus' table",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="number of seeds: 1, 2, ... N (default: 1)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=REPOSITORY / "runs" / "quality_table",
        help="work folder (default: runs/quality_table in the repository)",
    )
    parser.add_argument(
        "--scale",
        choices=("full", "smoke"),
        default="full",
        help="smoke: a tiny corpus and four updates, to try the script",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="CSV file of the rows (default: table.csv in the work folder)",
    )
    parser.add_argument(
        "--backend",
        choices=("tensorflow", "jax"),
        help="Keras backend (default: KERAS_BACKEND, or Keras' own choice)",
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--list",
        action="store_true",
        help="only list the rows that are there and those that are missing",
    )
    only.add_argument(
        "--prepare",
        action="store_true",
        help="only prepare the corpora",
    )
    only.add_argument(
        "--no-train",
        action="store_true",
        help="only add the rows of runs that have finished",
    )
    return parser


def parse():
    """Parses the command line."""
    parser = make_parser()
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    if options.backend:
        os.environ["KERAS_BACKEND"] = options.backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    unknown = set(options.presets or []) - set(presets_of(options.corpus))
    if unknown:
        parser.error(
            f"not in the table of {options.corpus}: "
            f"{', '.join(sorted(unknown))}; it has "
            f"{', '.join(presets_of(options.corpus))}"
        )
    options.folder = options.folder.absolute()
    if options.output is None:
        options.output = options.folder / "table.csv"
    if options.scale == "smoke" and options.output.resolve() == PUBLISHED:
        parser.error("a row of --scale smoke must not be published")
    return options


def stop(number, frame):
    """Ends on a signal, after the training has saved a checkpoint."""
    sys.exit(128 + number)


def main():
    """Measures what is missing, or lists it."""
    options = parse()
    from benchmarks.quality.rows.row_folder import RowFolder, deepnmt

    rows = table_rows(options.corpus, options.presets, options.seeds)
    folders = [RowFolder(row, options.folder, options.scale) for row in rows]
    if options.list:
        print("\n".join(describe_rows(folders, options.output)))
        return
    if options.prepare:
        for folder in folders:
            if folder.recipe_sha256 is not None:
                print(f"{folder.row}: {folder.prepared().directory}")
        return
    signal.signal(signal.SIGTERM, stop)
    failed = measure_missing(
        folders, options.output, not options.no_train, deepnmt
    )
    print("\n".join(describe_rows(folders, options.output)))
    if failed:
        sys.exit("\n".join(["Some rows failed:", *failed]))


if __name__ == "__main__":
    main()
