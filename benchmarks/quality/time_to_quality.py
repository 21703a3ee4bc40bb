"""Measures how long a recipe trains until the validation BLEU is good enough.

    python benchmarks/quality/time_to_quality.py --note "the recipe"
    python benchmarks/quality/time_to_quality.py --note "short run" \
        --set training.steps=1000
    python benchmarks/quality/time_to_quality.py --note "twice the peak" \
        --compared-with "short run" \
        --set training.steps=1000 training.learning_rate.peak=0.01

The bundled recipe `transformer_tiny.multi30k_en_de`, with the changes that
`--set` makes, is trained in a process of its own. The target is reached at the
first validation during training whose BLEU (greedy search) is high enough, or
at the end, by the final model with the recipe's beam search. Minutes are those
of training, with compilations and validations and without preparing the
corpus; tokens are real target tokens. The test set is never read.

One row is appended to `results/time_to_quality.csv` for each training;
`docs/time_to_quality.md` shows them, each with its difference from the run
that `--compared-with` names. An interrupted training goes on where it was, with
the same command.
"""

import argparse
import csv
import os
import sys
from pathlib import Path
from subprocess import CalledProcessError

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality.rows.work_folder import add_work_folder
from benchmarks.shared.result_rows import append_row, read_rows

RECIPE = "transformer_tiny.multi30k_en_de"
TARGET_BLEU = 39.0
PUBLISHED = Path(__file__).parent / "results" / "time_to_quality.csv"


def first_reached(curve, target):
    """Finds the first validation with a BLEU of at least `target`.

    Args:
        curve: rows of a run's `log.csv`, dicts of strings; `seconds` and
            `tokens` are those since the row before.
        target: BLEU.

    Returns:
        `(update, seconds, target tokens)` since the start of training, or
        `None`.
    """
    seconds = tokens = 0.0
    for row in curve:
        seconds += float(row["seconds"])
        tokens += float(row["tokens"])
        if row["val_bleu"] and float(row["val_bleu"]) >= target:
            return int(float(row["step"])), seconds, tokens
    return None


def reached_columns(curve, training, steps, final_bleu, target):
    """Returns the columns that say when the target was reached, if it was.

    `training` is that part of `run.json`; `final_bleu` is the validation BLEU
    of the final model.
    """
    reached = first_reached(curve, target)
    if reached is None and final_bleu >= target:
        reached = steps, training["seconds"], training["target_tokens"]
    update, seconds, tokens = reached or ("", "", "")
    return {
        "target_bleu": target,
        "updates_to_target": update,
        "minutes_to_target": round(seconds / 60, 1) if reached else "",
        "tokens_to_target": round(tokens) if reached else "",
    }


def train_and_score(name, changes, folder, scale):
    """Trains a recipe and scores its final model on the validation set.

    What is done already is not done again. Returns the run folder and the
    entry of its `scores.json`.
    """
    from benchmarks.quality.rows.corpora import prepared_corpus
    from benchmarks.quality.rows.row_folder import CHANGES, deepnmt
    from benchmarks.quality.rows.row_list import recipe_sha256
    from keras_deepnmt.files import read_json
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.recipes.loading import save_recipe

    changes = {**CHANGES[scale], **changes}
    recipe = load_recipe(name, changes)
    data = prepared_corpus(recipe.data, folder)
    key = f"seed_{recipe.seed}_{recipe_sha256(name, changes)[:12]}"
    directory = folder / "time_to_quality" / key
    directory.mkdir(parents=True, exist_ok=True)
    save_recipe(recipe, directory / "recipe.yaml", {})
    run = directory / "run"
    prepared = ["--prepared", str(data.directory.absolute())]
    if not (run / "run.json").is_file():
        file = str(directory / "recipe.yaml")
        deepnmt(["train", file, "--run-dir", str(run), *prepared])
    if not (run / "scores.json").is_file():
        deepnmt(["evaluate", str(run), "--split", "valid", *prepared])
    (scores,) = read_json(run / "scores.json")["evaluations"]
    return run, scores


def row_of(run_dir, scores, target):
    """Returns the columns of a finished run; `scores` are of `scores.json`."""
    from benchmarks.quality.rows.row_folder import provenance_of_run
    from keras_deepnmt.files import read_json

    run = read_json(run_dir / "run.json")
    with open(run_dir / "log.csv", encoding="utf-8", newline="") as file:
        curve = list(csv.DictReader(file))
    training, bleu = run["training"], scores["scores"]["bleu"]
    greedy = [float(row["val_bleu"]) for row in curve if row["val_bleu"]]
    return {
        **provenance_of_run(run),
        "date": scores["date"][:10],
        "recipe": RECIPE,
        "seed": run["seed"],
        "parameters": run["parameters"],
        "updates": run["steps"],
        "target_tokens": training["target_tokens"],
        "minutes": round(training["seconds"] / 60, 1),
        "tokens_per_second": round(training["target_tokens_per_second"]),
        "best_greedy_bleu": round(max(greedy), 2) if greedy else "",
        "final_bleu": round(bleu["value"], 2),
        "bleu_signature": bleu["signature"],
        **reached_columns(curve, training, run["steps"], bleu["value"], target),
    }


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="changes of the recipe, as in `deepnmt train --set`",
    )
    parser.add_argument("--note", required=True, help="what is tried")
    parser.add_argument(
        "--compared-with",
        default="",
        metavar="NOTE",
        help="note of the row that this one is compared with",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", type=float, default=TARGET_BLEU)
    add_work_folder(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=PUBLISHED,
        help="CSV file of the rows (default: results/time_to_quality.csv)",
    )
    options = parser.parse_args()
    if options.scale == "smoke" and options.output == PUBLISHED:
        parser.error("a row of --scale smoke needs an --output of its own")
    notes = [row["note"] for row in read_rows(options.output)]
    if options.compared_with and options.compared_with not in notes:
        parser.error(
            f"--compared-with must be the note of a row of {options.output}, "
            f"got {options.compared_with!r}. Its notes are: {notes}."
        )
    if options.note in notes:
        parser.error(
            f"--note must differ from those of other rows, got "
            f"{options.note!r} again."
        )
    return options


def main():
    """Trains, scores and adds the row."""
    options = parse()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from keras_deepnmt.commands.options.overrides import read_overrides
    from keras_deepnmt.errors import UserError

    try:
        changes = {**read_overrides(options.changes), "seed": options.seed}
        run, scores = train_and_score(
            RECIPE, changes, options.folder.absolute(), options.scale
        )
    except (UserError, CalledProcessError) as error:
        sys.exit(str(error))
    row = {
        **row_of(run, scores, options.target),
        "changes": "; ".join(options.changes),
        "note": options.note,
        "compared_with": options.compared_with,
    }
    append_row(options.output, row)
    reached = row["minutes_to_target"]
    print(
        f"validation BLEU {row['final_bleu']} after {row['minutes']} minutes "
        f"and {row['target_tokens']:,} target tokens; {options.target} "
        + (f"after {reached} minutes" if reached else "was not reached")
    )


if __name__ == "__main__":
    main()
