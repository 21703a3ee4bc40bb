"""How long `deepnmt translate` takes from its start, by what it compiles.

    python benchmarks/speed/translation_start.py RUN TEXT

The first lines of TEXT are translated by new processes in three ways: by plain
graphs (`--no-compile`), compiled by XLA with an empty cache, and compiled with
the cache of the command before. `seconds` are those of the processor, over all
cores, so that what else runs on the machine does not count; `elapsed` are those
that passed. Medians over a few rounds, in which the ways alternate, are
appended to `results/translation_start.csv`. `commands/options/compilation.py`
says from how many tokens on `translate` compiles.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from keras_deepnmt.translator.trained_run import read_summary

REPOSITORY = Path(__file__).parents[2]
WAYS = ("plain", "compiled", "cached")


def process_seconds(run, text, folder, way):
    """Translates a file in a new process.

    Returns its processor seconds, and the seconds that passed.
    """
    if way == "compiled":
        shutil.rmtree(folder, ignore_errors=True)
    option = "--no-compile" if way == "plain" else "--compile"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [
            *(sys.executable, "-m", "keras_deepnmt", "translate", run),
            *("--input", text, option),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "DEEPNMT_CACHE": str(folder),
        },
        stdout=subprocess.DEVNULL,
        check=True,
    )
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return user + after.ru_stime - before.ru_stime, elapsed


def count_tokens(run, lines):
    """Returns the number of source tokens, without the end tokens."""
    from keras_deepnmt.data.tokenizers import Tokenizer

    tokenizer = Tokenizer(run / "tokenizer" / "source.model")
    return sum(map(len, tokenizer.encode(lines)))


def measure(run, lines, rounds):
    """Returns the columns of one number of lines."""
    seconds = {way: [] for way in WAYS}
    elapsed = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        text = Path(name) / "text"
        text.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
        for _ in range(rounds):
            # `cached` comes after `compiled`, whose cache it reads.
            for way in WAYS:
                cache = Path(name) / "cache"
                found = process_seconds(run, text, cache, way)
                seconds[way].append(found[0])
                elapsed[way].append(found[1])
    return {
        "lines": len(lines),
        "tokens": count_tokens(run, lines),
        "rounds": rounds,
        **{
            f"{way}_seconds_median": round(statistics.median(values), 2)
            for way, values in seconds.items()
        },
        **{
            f"{way}_elapsed_median": round(statistics.median(values), 2)
            for way, values in elapsed.items()
        },
    }


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--lines", type=int, nargs="+", default=[1, 32, 100, 300, 1_000]
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "translation_start.csv",
    )
    options = parser.parse_args()
    summary = read_summary(options.run)
    lines = options.text.read_text(encoding="utf-8").splitlines()
    for count in options.lines:
        row = {
            **provenance("tensorflow", "keras"),
            "recipe": summary["name"],
            "parameters": summary["parameters"],
            **measure(options.run, lines[:count], options.rounds),
        }
        append_row(options.output, row)
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
