"""How much the compilation cache saves the second run of a recipe.

    python benchmarks/speed/compilation_cache.py

The quickstart's recipe on the embedded corpus is trained in two run folders by
new processes, which share a cache that is empty at first. The seconds are those
that TensorFlow logs for each executable that it compiles or reads from the
cache, over training, validation and search together. They include converting
graphs to XLA's language but not tracing in Python. The median ratio of a few
rounds is appended to `results/compilation_cache.csv`.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

REPOSITORY = Path(__file__).parents[2]
RECIPE = "transformer_tiny.demo_de_en"
LOGGED = re.compile(r"Compilation of XLA executable time: .*?\((\d+) us\)")


def environment(cache):
    """Returns an environment in which TensorFlow logs what it compiles."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    variables["DEEPNMT_CACHE"] = str(cache)
    # No other cache of compilations may be used.
    variables.pop("TF_XLA_FLAGS", None)
    variables["TF_CPP_MIN_LOG_LEVEL"] = "0"
    variables["TF_CPP_VMODULE"] = "device_compiler=1"
    return variables


def recipe_overrides(corpus, steps):
    """Returns recipe overrides: the corpus and the number of updates."""
    pairs = {
        split: {
            "source": str(corpus / f"{split}.de"),
            "target": str(corpus / f"{split}.en"),
        }
        for split in ("train", "valid")
    }
    return {
        "data.train": [pairs["train"]],
        "data.valid": pairs["valid"],
        "data.test": None,
        "training.steps": steps,
        "training.validate_every": steps,
        "training.checkpoint_every": steps,
        "training.average_checkpoints": 1,
    }


def train_once(run_dir, cache, prepared, changes):
    """Trains once; returns the seconds of each executable, and `run.json`."""
    words = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "keras_deepnmt", "train", RECIPE),
            *("--run-dir", run_dir, "--prepared", prepared, "--set", *words),
        ],
        env=environment(cache),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    run = json.loads((run_dir / "run.json").read_text(encoding="utf-8"))
    return [int(us) / 1e6 for us in LOGGED.findall(done.stderr)], run


def measure(folder, changes, number):
    """Trains two runs; returns the seconds of both, and the cache's size."""
    prepared, cache = folder / "prepared", folder / f"cache-{number}"
    starts = [
        train_once(folder / f"{name}-{number}", cache, prepared, changes)
        for name in ("first", "second")
    ]
    (first, run), (second, repeated) = starts
    assert run["weights_sha256"] == repeated["weights_sha256"]
    assert len(first) == len(second) > 0
    size = sum(f.stat().st_size for f in cache.rglob("*.pb"))
    for name in ("first", "second"):
        shutil.rmtree(folder / f"{name}-{number}")
    shutil.rmtree(cache)
    return first, second, size


def main():
    """Measures and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "compilation_cache.csv",
    )
    options = parser.parse_args()
    from keras_deepnmt.data.demo import write_demo_corpus
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
    from keras_deepnmt.recipes.loading import load_recipe

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_demo_corpus(folder / "corpus", num_train=20_000, num_test=50)
        changes = recipe_overrides(folder / "corpus", options.steps)
        recipe = load_recipe(RECIPE, changes)
        prepare_corpus(recipe.data, folder / "prepared", progress=False)
        rounds = [
            measure(folder, changes, number) for number in range(options.rounds)
        ]
    firsts, seconds = ([sum(r[i]) for r in rounds] for i in (0, 1))
    ratios = [b / a for a, b in zip(firsts, seconds, strict=True)]
    row = {
        **provenance("tensorflow", "keras"),
        "recipe": RECIPE,
        "executables": len(rounds[0][0]),
        "cache_mib": round(rounds[0][2] / 2**20, 1),
        "rounds": options.rounds,
        "first_seconds_median": round(statistics.median(firsts), 2),
        "second_seconds_median": round(statistics.median(seconds), 2),
        "ratio_median": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
    }
    append_row(options.output, row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
