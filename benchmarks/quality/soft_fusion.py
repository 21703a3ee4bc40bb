r"""Looks for the part of soft SurfaceFusion that costs quality, by ablation.

    python benchmarks/quality/soft_fusion.py --work-folder FOLDER
    python benchmarks/quality/soft_fusion.py --work-folder FOLDER \
        --variants plain soft "temperature 5" --seeds 1 2

`transformer_tiny.multi30k_en_de` is trained with each variant in bfloat16 for
`--steps` updates, after which its learning rate is 0. The variants are the
plain model, hard and soft fusion, and soft fusion with one thing changed. Each
run is a row of `results/soft_fusion.csv`: loss and greedy BLEU on the
validation set, its loss if the surface is left out of the trained model, and
the loss on pairs of the training set, all without dropout. The test set is not
looked at. The runs stay in the folder: called again with the same one, the
script goes on where it was.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "soft_fusion.csv"
RECIPE = "transformer_tiny.multi30k_en_de"
# As many pairs of the training and the validation set, at equal distances.
PAIRS = 1_000
BATCH_SIZE = 100


def _fusion(**config):
    return {
        "model.overrides.output_fusion": {
            "class_name": "keras_deepnmt>SurfaceFusion",
            "config": config,
        }
    }


# What each variant changes in the recipe.
VARIANTS = {
    "plain": {},
    "hard": _fusion(mode="hard"),
    "soft": _fusion(mode="soft"),
    # The released code divides by 5 in one of its modes.
    "temperature 5": _fusion(mode="soft", temperature=5.0),
    "attention dropout 0.2": _fusion(mode="soft", attention_dropout=0.2),
    "attention starts as Glorot's": _fusion(
        mode="soft", attention_initializer="glorot_uniform"
    ),
    "mean in place of attention": _fusion(mode="soft", surface="mean"),
    "feed-forward before the matrix": _fusion(mode="soft", feed_forward=True),
    "no label smoothing": {
        **_fusion(mode="soft"),
        "training.label_smoothing": 0.0,
    },
    "dropout 0.3": {**_fusion(mode="soft"), "model.overrides.dropout": 0.3},
    # What the two above do to the plain model.
    "plain, no label smoothing": {"training.label_smoothing": 0.0},
    "plain, dropout 0.3": {"model.overrides.dropout": 0.3},
}


def main(arguments: list[str] | None = None) -> None:
    """Trains the models that have no rows yet, and appends their rows."""
    options = _parse(arguments)
    done = {
        (row["variant"], int(row["seed"]), int(row["updates"]))
        for row in (
            read_rows(options.output) if options.output.exists() else []
        )
    }
    for seed in options.seeds:
        for variant in options.variants:
            if (variant, seed, options.steps) not in done:
                row = measure(variant, seed, options)
                append_rows(options.output, [row])
                print(row)


def measure(variant: str, seed: int, options) -> dict:
    """Trains a model, unless it is there, and returns its row."""
    from benchmarks.quality.measuring.trained_run import TrainedRun

    changes = {
        **VARIANTS[variant],
        "seed": seed,
        "training.precision": "mixed_bfloat16",
        "training.steps": options.steps,
        "training.validate_every": options.steps,
    }
    folder = options.work_folder
    directory = folder / f"{variant} {seed} {options.steps}"
    run = TrainedRun(RECIPE, directory, folder, changes)
    summary, last = run.summary, run.validations()[-1]
    corpus = next(
        one for one in run.data.manifest["corpora"] if one["split"] == "train"
    )
    files = {f"{side}_file": corpus[side] for side in ("source", "target")}
    training_loss = mean_loss(directory, **files)
    decoder_alone = ""
    if "model.overrides.output_fusion" in changes:
        decoder_alone = round(
            mean_loss(directory, decoder_alone=True, split="valid"), 4
        )
    return {
        **provenance("keras", "tensorflow", "sacrebleu"),
        "recipe": RECIPE,
        "variant": variant,
        "seed": seed,
        "updates": summary["steps"],
        "parameters": summary["parameters"],
        "training_loss": round(training_loss, 4),
        "valid_loss": round(float(last["val_loss"]), 4),
        "decoder_alone_valid_loss": decoder_alone,
        "valid_bleu": round(float(last["val_bleu"]), 2),
        "valid_bleu_interval": round(float(last["val_bleu_interval"]), 2),
        "bleu_signature": summary["valid"]["bleu"]["signature"],
        "minutes": round(summary["training"]["seconds"] / 60, 1),
    }


def mean_loss(run: Path, decoder_alone: bool = False, **texts) -> float:
    """Returns the loss of a run's model in nats per token, without dropout.

    Args:
        run: the run folder.
        decoder_alone: whether a fusion leaves the surface out.
        **texts: those of `AnalyzedRun`.
    """
    from keras_deepnmt.analysis.analyzed_run import AnalyzedRun

    pairs = AnalyzedRun(run, num_sentences=PAIRS, compiled=False, **texts)
    model = pairs.model
    if decoder_alone:
        # Hard and soft fusion then have the decoder's part only.
        model.output_fusion.weight = 1.0
        model.output_fusion.temperature = 1e9
    total = number = 0.0
    for start in range(0, PAIRS, BATCH_SIZE):
        some = slice(start, start + BATCH_SIZE)
        scores = model({name: ids[some] for name, ids in pairs.inputs.items()})
        loss, tokens = model.sum_token_losses(
            pairs.labels[some], scores, training=False
        )
        total, number = total + float(loss), number + float(tokens)
    return total / number


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work-folder", type=Path, required=True)
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
