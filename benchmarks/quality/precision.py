r"""Compares models trained in bfloat16 with models trained in float32.

    python benchmarks/quality/precision.py --work-folder FOLDER
    python benchmarks/quality/precision.py --work-folder FOLDER \
        --recipe transformer_tiny.multi30k_en_de --precisions mixed_bfloat16

A recipe is trained with `training.precision` and each seed, one run after
another, and its final model is scored on the test set. Each run gives a row of
`results/precision.csv`, with the time of training and the time until greedy
translations of the validation set had a BLEU of `--target`. The runs stay in
the folder: called again with the same one, the script goes on where it was.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "precision.csv"


def main(arguments: list[str] | None = None) -> None:
    """Trains the models that have no rows yet, and appends their rows."""
    options = _parse(arguments)
    done = {
        (row["recipe"], int(row["seed"]), row["precision"])
        for row in (
            read_rows(options.output) if options.output.exists() else []
        )
    }
    for seed in options.seeds:
        for precision in options.precisions:
            if (options.recipe, seed, precision) not in done:
                row = measure(precision, seed, options)
                append_rows(options.output, [row])
                print(row)


def measure(precision: str, seed: int, options) -> dict:
    """Trains and scores a model, unless it is there, and returns its row."""
    from benchmarks.quality.measuring.trained_run import TrainedRun

    changes = {"seed": seed, "training.precision": precision}
    if options.steps:
        changes["training.steps"] = options.steps
    folder = options.work_folder
    directory = folder / options.recipe / f"{precision}_{seed}"
    run = TrainedRun(options.recipe, directory, folder, changes)
    summary, bleu = run.summary, run.test_bleu()
    training = summary["training"]
    valid = summary["valid"].get("bleu")  # not every recipe scores it
    update, minutes = _when_reached(run, options.target)
    return {
        **provenance("keras", "tensorflow", "sacrebleu"),
        "recipe": options.recipe,
        "seed": seed,
        "precision": precision,
        "updates": summary["steps"],
        "minutes": round(training["seconds"] / 60, 1),
        "compile_minutes": round(training["compile_seconds"] / 60, 1),
        "target_tokens_per_second": training["target_tokens_per_second"],
        "valid_bleu": round(valid["value"], 2) if valid else "",
        "test_bleu": round(bleu["value"], 2),
        "test_bleu_interval": round(bleu["interval"], 2),
        "bleu_signature": bleu["signature"],
        "target": options.target,
        "updates_to_target": update,
        "minutes_to_target": minutes,
    }


def _when_reached(run, target):
    """Returns update and minutes of the first validation with the target.

    The minutes have validations and compilations in them.
    """
    seconds = 0.0
    for row in run.validations():
        seconds += float(row["seconds"])
        if row.get("val_bleu") and float(row["val_bleu"]) >= target:
            return row["step"], round(seconds / 60, 1)
    return "", ""


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work-folder", type=Path, required=True)
    parser.add_argument("--recipe", default="transformer_tiny.demo_de_en")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--precisions", nargs="+", default=["float32", "mixed_bfloat16"]
    )
    parser.add_argument(
        "--target", type=float, default=39.0, help="BLEU of validations"
    )
    parser.add_argument("--steps", type=int, help="fewer updates, to try it")
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
