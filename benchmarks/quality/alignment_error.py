"""Alignment error rate of the attention of each decoder block.

    python benchmarks/quality/alignment_error.py
    python benchmarks/quality/alignment_error.py --run quickstart/run

The recipe of `deepnmt quickstart` is trained, with several seeds, or the run
folder of an earlier `deepnmt quickstart` is read. The model then aligns the
words of the embedded corpus' gold standard (`demo_alignments`) with those of
their reference translations, by the mean attention of each decoder block
(`align_words`). One row for each block is appended to
`results/alignment_error.csv`. Seeds that have rows already, of the same commit
and number of updates, are skipped.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality.attention_initialization import prepare
from benchmarks.shared.result_rows import (
    append_rows,
    git_commit,
    provenance,
    read_rows,
)

RESULTS = Path(__file__).parent / "results" / "alignment_error.csv"


def error_rates(translator):
    """Returns the alignment error rate of each decoder block, in order."""
    from keras_deepnmt.analysis import (
        align_words,
        cross_attention_names,
        recorded_names,
    )
    from keras_deepnmt.data.demo import demo_alignments
    from keras_deepnmt.evaluation import alignment_error_rate, parse_alignment

    gold = demo_alignments()
    links = [parse_alignment(pair.alignment) for pair in gold]
    texts = [pair.source for pair in gold], [pair.target for pair in gold]
    blocks = cross_attention_names(recorded_names(translator.model))
    return [
        alignment_error_rate(
            align_words(translator, *texts, layer), *zip(*links, strict=True)
        )
        for layer in range(1, len(blocks) + 1)
    ]


def rows_of(run_dir):
    """Measures the model of a run folder; returns a row for each block."""
    from keras_deepnmt.translator import Translator, read_run

    summary = read_run(run_dir).summary
    rates = error_rates(Translator.load(run_dir, compiled=False))
    return [
        {
            **provenance("tensorflow", "keras"),
            "recipe": summary["name"],
            "seed": summary["seed"],
            "updates": summary["steps"],
            "parameters": summary["parameters"],
            "decoder_blocks": len(rates),
            "layer": layer,
            "alignment_error_rate": round(rate, 4),
        }
        for layer, rate in enumerate(rates, start=1)
    ]


def train_run(folder, changes, seed):
    """Trains the quickstart's recipe; returns the run folder."""
    from keras_deepnmt.commands.quickstart import RECIPE
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.runs.train import train

    run_dir = folder / f"run_{seed}"
    train(
        load_recipe(RECIPE, {**changes, "seed": seed}),
        run_dir,
        prepared_dir=folder / "prepared",
        quiet=True,
    )
    return run_dir


def measured_seeds(rows, commit, updates):
    """Returns the seeds that have rows of this commit, as text.

    A commit that ends in `+` has none: files differ from it.
    """
    if commit.endswith("+"):
        return set()
    return {
        row["seed"]
        for row in rows
        if (row["commit"], row["updates"]) == (commit, str(updates))
    }


def measure_missing(folder, scale, seeds, output):
    """Trains what has no rows yet, one seed after another, and adds them."""
    import keras

    from keras_deepnmt.commands.quickstart import RECIPE
    from keras_deepnmt.recipes import load_recipe

    changes = prepare(folder, scale)
    updates = load_recipe(RECIPE, changes).training.steps
    done = measured_seeds(read_rows(output), git_commit(), updates)
    for seed in range(1, seeds + 1):
        if str(seed) not in done:
            report(rows_of(train_run(folder, changes, seed)), output)
            keras.backend.clear_session()


def report(rows, output):
    """Appends rows, and prints them."""
    append_rows(output, rows)
    for row in rows:
        print(
            f"seed {row['seed']}, decoder block {row['layer']}: alignment "
            f"error rate {row['alignment_error_rate']:.3f}",
            flush=True,
        )


def main():
    """Measures what is missing, or one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--run", type=Path, help="run folder to measure, instead of training"
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="number of seeds: 1, 2, ... N"
    )
    parser.add_argument(
        "--scale",
        choices=("full", "smoke"),
        default="full",
        help="smoke: a tiny model and a few updates, to try the script",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to keep corpus and run folders (default: a temporary "
        "folder)",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if options.run is not None:
        report(rows_of(options.run), options.output)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        measure_missing(folder, options.scale, options.seeds, options.output)


if __name__ == "__main__":
    main()
