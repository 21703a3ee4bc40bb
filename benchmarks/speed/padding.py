r"""How much of the training batches is padding, and the least it could be.

    python benchmarks/speed/padding.py
    python benchmarks/speed/padding.py \\
        --recipe transformer_tiny.multi30k_en_de --shapes 4 8 12

The batch shapes of a recipe are chosen for several numbers of them. Padding is
the share of an epoch's tokens, on both sides; it is divided into that of the
source rows, of the target rows, and rows of padding only. The least padding is
a proven limit that no choice of so many shapes goes below as long as every pair
has a row of its own: see `measuring/padding_bound.py`. The time of the search
is processor time. One row for each number of shapes is appended to
`results/padding.csv`.

The recipe `transformer_tiny.demo_de_en` needs no files. Named corpora are read
from the folder that the environment variable DEEPNMT_DATA names, or from
`shared/data` beside the repository.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.recipe_data import DEMO, prepare_recipe
from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.speed.measuring.padding_bound import least_padding


def measure(lengths, batch_tokens, max_shapes):
    """Chooses batch shapes; returns the columns of their row."""
    import numpy as np

    from keras_deepnmt.data.batches.batch_plan import BatchPlan
    from keras_deepnmt.data.batches.batch_shapes import (
        assign_batch_shapes,
        choose_batch_shapes,
    )

    start = time.process_time()
    batch_shapes = choose_batch_shapes(lengths, batch_tokens, max_shapes)
    seconds = time.process_time() - start
    plan = BatchPlan(lengths, batch_shapes)
    assigned = assign_batch_shapes(lengths, batch_shapes)
    of_shapes = np.array(
        [(s.source_length, s.target_length) for s in batch_shapes]
    )
    tokens = sum(
        shape.num_tokens * batches
        for shape, batches in zip(
            batch_shapes, plan.batches_per_shape, strict=True
        )
    )
    sides = (of_shapes[assigned] - lengths).sum(axis=0) / tokens
    padding = plan.padding_fraction
    return {
        "shapes": max_shapes,
        "batches": plan.batches_per_epoch,
        "padding": round(padding, 5),
        "source_padding": round(float(sides[0]), 5),
        "target_padding": round(float(sides[1]), 5),
        "row_padding": round(padding - float(sides.sum()), 5),
        "search_seconds": round(seconds, 2),
    }


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default=DEMO)
    parser.add_argument("--shapes", type=int, nargs="+", default=[4])
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "padding.csv",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recipe, data = prepare_recipe(options.recipe, folder)
        lengths = data.store("train").lengths[:]
    batch_tokens = recipe.training.batch_tokens
    for max_shapes in options.shapes:
        row = {
            **provenance("numpy"),
            "recipe": options.recipe,
            "pairs": len(lengths),
            "batch_tokens": batch_tokens,
            **measure(lengths, batch_tokens, max_shapes),
        }
        least = least_padding(lengths, max_shapes, row["padding"])
        row["least_padding"] = round(least, 5)
        append_row(options.output, row)
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
