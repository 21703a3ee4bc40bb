"""Validation loss over updates: dense connections against residual ones.

    python benchmarks/quality/learning_curves.py --corpus demo
    python benchmarks/quality/learning_curves.py --corpus multi30k --seeds 3

Shen et al. (2018) say that with dense connections a convolutional model needs
fewer updates to come as low. Here `conv_seq2seq_tiny`, the residual baseline,
and both dense models of its size are trained on the same batches in the same
order, as the paper does before it lowers the rate: Nesterov's momentum 0.99,
rate 0.25, gradients clipped to 0.1, labels not smoothed. The sizes are near,
not equal: rows have the numbers of parameters, which differ by a few percent.

One row a validation goes to `results/learning_curves.csv` when a training is
done; those that are there already, of the same commit and settings, are not
repeated. From all rows come `results/updates_saved.csv`, the share of updates
that each dense model needs less than the baseline to reach levels of the
baseline's loss (paired by seed, mean and 95 % interval by Student's t; where a
seed never reaches a level, that is said and nothing is averaged), and the plot
`results/learning_curves_CORPUS.svg`, for which matplotlib is needed.
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
    origin,
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
# A curve is known by these.
KEY = ("commit", "preset", "seed", *SETTINGS)


def done_before(rows, commit):
    """Lists the curves of this very commit, by `KEY`."""
    # Files that differ from the commit may have changed since.
    if commit.endswith("+"):
        return set()
    return {tuple(row[name] for name in KEY) for row in rows}


def measure(corpus, settings, presets, seeds, overrides, output):
    """Trains what is missing, and appends its rows.

    Args:
        corpus: a `SmallCorpus`.
        settings: dict of the settings, which are columns.
        presets: names of presets.
        seeds: int.
        overrides: dict of arguments that replace the presets'.
        output: the table.
    """
    import keras

    from benchmarks.quality.measuring.curve_training import train_curve

    commit = git_commit()
    done = done_before(read_rows(output), commit)
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
                **origin("tensorflow", "keras"),
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
                f"least {min(loss for _, loss in curve):.3f} nats a token",
                flush=True,
            )


def prepare(name, folder, size, batch_tokens):
    """Prepares a corpus, or ends with the reason."""
    from benchmarks.quality.measuring import small_corpora
    from keras_deepnmt.errors import UserError

    of_corpus = size[name]
    try:
        function = getattr(small_corpora, f"prepare_{name}")
        function(folder, **of_corpus["data"])
    except UserError as error:
        sys.exit(str(error))
    return small_corpora.SmallCorpus(
        folder, batch_tokens, of_corpus["max_shapes"]
    )


def report(output, settings):
    """Writes the table of saved updates, and draws the curves."""
    rows = read_rows(output)
    summary = output.with_name("updates_saved.csv")
    summary.unlink(missing_ok=True)
    found = summarize(rows, BASELINE)
    if found:
        append_rows(summary, found)
    for row in found:
        print(
            f"{row['corpus']}, {row['model']}, {row['level']} "
            f"({row['val_loss']}): {row['updates_needed']} updates against "
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
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", choices=CORPORA, default="demo")
    parser.add_argument("--only", nargs="+", choices=PRESETS, default=PRESETS)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--seeds", type=int, help="1, 2, ... N")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--validate-every", type=int, metavar="UPDATES")
    parser.add_argument(
        "--batch-tokens", type=int, help="padded, on a batch's longer side"
    )
    parser.add_argument("--rate", type=float, default=0.25)
    parser.add_argument(
        "--folder", type=Path, help="where to keep the prepared corpus"
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
    """Measures what is missing, sums up and draws."""
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
