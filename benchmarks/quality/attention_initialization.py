"""Test BLEU with two initializers of the attention's projections.

    python benchmarks/quality/attention_initialization.py
    python benchmarks/quality/attention_initialization.py --seeds 5

The query, key and value projections of this package's attention start with a
tenth of the variance of Glorot's initializer; most other implementations use
all of it. Here the recipe of `deepnmt quickstart` is trained with either one,
which `attention_initializer` chooses: same corpus, same prepared data, same
seeds, same updates. The final model, an average of checkpoints, translates the
test set as the recipe says.

One row per training is appended to `results/attention_initialization.csv`.
Trainings whose rows are already there, with the same commit and number of
updates, are skipped; an interrupted training continues in its run folder if
`--folder` is given again.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import (
    append_row,
    git_commit,
    provenance,
    read_rows,
)

# Names of the table, and the recipe's `attention_initializer`.
INITIALIZERS = {
    "tenth of Glorot's variance": None,
    "Glorot's variance": "glorot_uniform",
}
# The columns that identify a training.
KEY = ("commit", "initializer", "seed", "updates")


def measured_trainings(rows, commit):
    """Returns the trainings that have a row of this commit, as tuples of `KEY`.

    A commit that ends in `+` has none: files differ from it and may have
    changed since.
    """
    if commit.endswith("+"):
        return set()
    rows = [row for row in rows if row["commit"] == commit]
    return {tuple(row[name] for name in KEY) for row in rows}


def prepare(folder, scale):
    """Prepares the quickstart's corpus; returns the changes to the recipe.

    `scale` is `"full"` or `"smoke"`, as in `deepnmt quickstart`.
    """
    from keras_deepnmt.commands.quickstart import (
        NUM_PAIRS,
        RECIPE,
        recipe_overrides,
    )
    from keras_deepnmt.data import prepare_corpus
    from keras_deepnmt.data.demo import write_demo_corpus
    from keras_deepnmt.recipes import load_recipe

    write_demo_corpus(folder / "corpus", **NUM_PAIRS[scale])
    changes = recipe_overrides(folder / "corpus", scale)
    recipe = load_recipe(RECIPE, changes)
    prepare_corpus(recipe.data, folder / "prepared", progress=False)
    return changes


def measure(folder, changes, initializer, seed):
    """Trains and scores one model; returns the columns of its row."""
    from keras_deepnmt.commands.quickstart import RECIPE
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.runs.evaluate import evaluate
    from keras_deepnmt.runs.train import train

    changes = {**changes, "seed": seed}
    name = INITIALIZERS[initializer]
    if name is not None:
        changes["model.overrides.attention_initializer"] = name
    run_dir = folder / f"run_{name or 'default'}_{seed}"
    run = train(
        load_recipe(RECIPE, changes),
        run_dir,
        prepared_dir=folder / "prepared",
        quiet=True,
    )
    scores = evaluate(run_dir)
    bleu = scores["scores"]["bleu"]
    return {
        "recipe": run["name"],
        "initializer": initializer,
        "attention_initializer": name or "",
        "seed": seed,
        "updates": run["steps"],
        "parameters": run["parameters"],
        "averaged_checkpoints": len(run["averaged_steps"]),
        "training_minutes": round(run["training"]["seconds"] / 60, 1),
        "test_set": scores["test_set"]["name"],
        "sentences": scores["test_set"]["sentences"],
        "num_beams": scores["decoding"]["num_beams"],
        "length_penalty": scores["decoding"]["length_penalty"],
        "bleu": round(bleu["value"], 2),
        "bleu_signature": bleu["signature"],
    }


def measure_missing(folder, scale, seeds, output):
    """Trains what has no row yet, one seed after another, and appends rows."""
    import keras

    from keras_deepnmt.commands.quickstart import RECIPE
    from keras_deepnmt.recipes import load_recipe

    changes = prepare(folder, scale)
    commit = git_commit()
    done = measured_trainings(read_rows(output), commit)
    updates = load_recipe(RECIPE, changes).training.steps
    for seed in range(1, seeds + 1):
        for initializer in INITIALIZERS:
            if (commit, initializer, str(seed), str(updates)) in done:
                continue
            row = measure(folder, changes, initializer, seed)
            row = provenance("tensorflow", "keras", "sacrebleu") | row
            append_row(output, row)
            print(
                f"{initializer}, seed {seed}, {row['updates']} updates, "
                f"{row['training_minutes']} minutes: BLEU {row['bleu']}",
                flush=True,
            )
            keras.backend.clear_session()


def main():
    """Measures what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent
        / "results"
        / "attention_initialization.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        measure_missing(folder, options.scale, options.seeds, options.output)


if __name__ == "__main__":
    main()
