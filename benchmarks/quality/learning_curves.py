"""Validation loss over updates: dense compared with residual connections.

    python benchmarks/quality/learning_curves.py --corpus demo
    python benchmarks/quality/learning_curves.py --corpus multi30k --seeds 3

Shen et al. (2018) report that a convolutional model with dense connections
needs fewer updates to reach a given loss. Here `conv_seq2seq_tiny`, the
residual baseline, and both dense models of its size are trained on the same
batches in the same order, with the paper's settings before it lowers the
learning rate: Nesterov momentum 0.99, learning rate 0.25, gradients clipped to
norm 0.1, no label smoothing. The models' sizes differ by a few percent; the
rows contain the numbers of parameters.

When a training ends, its curve is appended to `results/learning_curves.csv`,
one row per validation. Trainings whose rows are already there, with the same
commit and settings, are skipped. From all rows the script computes
`results/updates_saved.csv`: the fraction of updates that each dense model needs
less than the baseline to reach certain losses of the baseline (paired by seed;
mean and 95 % interval by Student's t; if a seed never reaches a loss, the table
says so and has no mean). It also draws `results/learning_curves_CORPUS.svg`,
which needs matplotlib.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality.measuring.curve_plot import draw, read_curves
from benchmarks.quality.measuring.updates_saved import SETTINGS, summarize
from benchmarks.shared.result_rows import (
    append_rows,
    git_commit,
    provenance,
    read_rows,
)

BASELINE = "conv_seq2seq_tiny"
PRESETS = (BASELINE, "dense_nmt_1_tiny", "dense_nmt_2_tiny")
CORPORA = ("demo", "multi30k")
SIZES = {
    "full": {
        "demo": dict(updates=2_000, max_shapes=1, data={}),
        "multi30k": dict(updates=3_000, max_shapes=2, data={}),
        "seeds": 3,
        "batch_tokens": 1_200,
        "validate_every": 50,
        "overrides": {},
    },
    "smoke": {
        "demo": dict(
            updates=4,
            max_shapes=1,
            data=dict(
                num_pairs={"valid": 20, "test": 1, "train": 200},
                vocabulary_size=150,
            ),
        ),
        "multi30k": dict(updates=4, max_shapes=1, data={}),
        "seeds": 1,
        "batch_tokens": 100,
        "validate_every": 2,
        "overrides": dict(
            hidden_dim=8,
            growth_dim=4,
            num_encoder_layers=1,
            num_decoder_layers=1,
        ),
    },
}
# The columns that identify a curve.
KEY = ("commit", "preset", "seed", *SETTINGS)


def measured_curves(rows, commit):
    """Returns the curves that have rows of this commit, as tuples of `KEY`."""
    # With `+`, files differ from the commit and may have changed since.
    if commit.endswith("+"):
        return set()
    return {tuple(row[name] for name in KEY) for row in rows}


def measure(corpus, settings, presets, seeds, overrides, output):
    """Trains the models that have no rows yet, and appends their rows.

    `settings` become columns, `overrides` are arguments that override the
    presets', and `output` is the CSV file.
    """
    import keras

    from benchmarks.quality.measuring.curve_training import train_curve

    commit = git_commit()
    done = measured_curves(read_rows(output), commit)
    for seed in range(1, seeds + 1):
        for preset in presets:
            values = {"commit": commit, "preset": preset, "seed": seed}
            values |= settings
            if tuple(str(values[name]) for name in KEY) in done:
                continue
            curve, parameters, seconds = train_curve(
                corpus, preset, seed, settings, overrides
            )
            row = {
                **provenance("tensorflow", "keras"),
                **settings,
                "preset": preset,
                "parameters": parameters,
                "seed": seed,
                "seconds": round(seconds, 1),
            }
            points = [
                {"update": update, "val_loss": round(loss, 5)}
                for update, loss in curve
            ]
            append_rows(output, [row | point for point in points])
            keras.backend.clear_session()
            print(
                f"{preset}, seed {seed}, {parameters:,} parameters, "
                f"{seconds:.0f} s: {curve[0][1]:.3f} to {curve[-1][1]:.3f}, "
                f"lowest {min(loss for _, loss in curve):.3f} nats per token",
                flush=True,
            )


def prepare(name, folder, size, batch_tokens):
    """Prepares a corpus, or exits with a message."""
    from benchmarks.quality.measuring import small_corpora
    from keras_deepnmt.errors import UserError

    corpus_options = size[name]
    try:
        function = getattr(small_corpora, f"prepare_{name}")
        function(folder, **corpus_options["data"])
    except UserError as error:
        sys.exit(str(error))
    return small_corpora.SmallCorpus(
        folder, batch_tokens, corpus_options["max_shapes"]
    )


def report(output, settings):
    """Writes the table of saved updates, and draws the curves."""
    rows = read_rows(output)
    summary = output.with_name("updates_saved.csv")
    summary.unlink(missing_ok=True)
    comparisons = summarize(rows, BASELINE)
    if comparisons:
        append_rows(summary, comparisons)
    for row in comparisons:
        print(
            f"{row['corpus']}, {row['model']}, {row['level']} "
            f"({row['val_loss']}): {row['updates_needed']} updates, baseline "
            f"{row['updates_against']}, saved {row['saved']} "
            f"± {row['saved_interval']}"
        )
    corpus = settings["corpus"]
    draw(
        read_curves(rows, settings),
        f"{corpus}, {settings['batch_tokens']:,} tokens a batch, "
        f"rate {settings['learning_rate']:g}",
        output.with_name(f"{output.stem}_{corpus}.svg"),
    )


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", choices=CORPORA, default="demo")
    parser.add_argument("--only", nargs="+", choices=PRESETS, default=PRESETS)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument(
        "--seeds", type=int, help="number of seeds: 1, 2, ... N"
    )
    parser.add_argument("--updates", type=int)
    parser.add_argument("--validate-every", type=int, metavar="UPDATES")
    parser.add_argument(
        "--batch-tokens",
        type=int,
        help="padded tokens on the longer side of a batch",
    )
    parser.add_argument(
        "--rate", type=float, default=0.25, help="learning rate"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where to keep the prepared corpus (default: a temporary folder)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "learning_curves.csv",
    )
    options = parser.parse_args()
    size = SIZES[options.size]
    defaults = {**size, **size[options.corpus]}
    for name in ("seeds", "updates", "validate_every", "batch_tokens"):
        if getattr(options, name) is None:
            setattr(options, name, defaults[name])
    if options.updates % options.validate_every:
        parser.error("--updates must be a multiple of --validate-every")
    return options


def main():
    """Trains what is missing, then writes the summary and the plot."""
    options = parse()
    size = SIZES[options.size]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from benchmarks.quality.measuring.curve_training import device

    settings = {
        "corpus": options.corpus,
        "updates": options.updates,
        "validate_every": options.validate_every,
        "batch_tokens": options.batch_tokens,
        "learning_rate": options.rate,
        "device": device(),
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        corpus = prepare(options.corpus, folder, size, options.batch_tokens)
        measure(
            corpus,
            settings,
            options.only,
            options.seeds,
            size["overrides"],
            options.output,
        )
    report(options.output, settings)


if __name__ == "__main__":
    main()
