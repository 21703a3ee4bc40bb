"""How fast an export of a run translates, compared with an older one's export.

    python benchmarks/speed/export_speed.py RUN TEXT --old PATH

PATH is another checkout of this repository. Both checkouts export the run;
both SavedModels are then loaded into one process and translate the same lines
of TEXT in turns, in batches of several sizes, by the search of the run's
recipe. A row has the speed of the first export relative to the second one, the
median over the rounds and its range, and the source sentences per second of
both. Rows are appended to `results/export_speed.csv`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, git_commit, provenance
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator.loading import read_summary

REPOSITORY = Path(__file__).parents[2]
SIDES = ("new", "old")


def export_with(checkout, run, folder):
    """Exports a run with the package of a checkout."""
    subprocess.run(
        [sys.executable, "-m", "keras_deepnmt", "export", run, folder],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        # Python imports from there before PYTHONPATH.
        cwd=checkout,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def batches_of(lines, size):
    """Splits lines into batches; what is left over is dropped.

    Example:
    >>> batches_of(["a", "b", "c", "d", "e"], 2)
    [['a', 'b'], ['c', 'd']]
    """
    whole = len(lines) // size * size
    return [lines[i : i + size] for i in range(0, whole, size)]


def seconds_of(client, batches):
    """Returns the seconds that the batches take, and the translations."""
    start = time.perf_counter()
    found = [client.translate(batch) for batch in batches]
    return time.perf_counter() - start, found


def measure(clients, batches, rounds):
    """Returns the columns of a row: speeds in sentences per second.

    Args:
        clients: dict of `SavedModelClient` by side.
        batches: lists of sentences.
        rounds: int.

    Returns:
        A dict.
    """
    found = {side: seconds_of(clients[side], batches)[1] for side in SIDES}
    num_same = sum(
        new == old
        for batch in zip(*(found[side] for side in SIDES), strict=True)
        for new, old in zip(*batch, strict=True)
    )
    seconds = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            seconds[side].append(seconds_of(clients[side], batches)[0])
    num_sentences = sum(map(len, batches))
    ratios = [old / new for new, old in zip(*seconds.values(), strict=True)]
    return {
        "batch": len(batches[0]),
        "sentences": num_sentences,
        "same_translations": num_same,
        "rounds": rounds,
        "speed_median": round(statistics.median(ratios), 3),
        "speed_min": round(min(ratios), 3),
        "speed_max": round(max(ratios), 3),
        **{
            f"{side}_sentences_per_second": round(
                num_sentences / statistics.median(seconds[side]), 2
            )
            for side in SIDES
        },
    }


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a trained run")
    parser.add_argument("text", type=Path, help="source sentences")
    parser.add_argument(
        "--old", type=Path, required=True, help="another checkout"
    )
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[1, 8, 32, 128]
    )
    parser.add_argument(
        "--lines", type=int, default=128, help="number of lines of TEXT to use"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "export_speed.csv",
    )
    return parser.parse_args()


def main():
    """Measures and appends the rows."""
    options = parse()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from keras_deepnmt.serving import SavedModelClient

    try:
        recipe = read_summary(options.run)["name"]
    except UserError as error:
        sys.exit(str(error))
    run = options.run.absolute()
    checkouts = dict(
        zip(SIDES, (REPOSITORY, options.old.absolute()), strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        clients = {}
        for side, checkout in checkouts.items():
            export_with(checkout, run, Path(folder, side))
            clients[side] = SavedModelClient(Path(folder, side))
    text = options.text.read_text(encoding="utf-8")
    lines = text.splitlines()[: options.lines]
    for size in options.batches:
        row = {
            **provenance("tensorflow", "keras"),
            "old_commit": git_commit(checkouts["old"]),
            "recipe": recipe,
            **measure(clients, batches_of(lines, size), options.rounds),
        }
        append_row(options.output, row)
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
