"""How long `deepnmt translate` takes from its start, by what it compiles.

    python benchmarks/speed/translation_start.py RUN TEXT
    python benchmarks/speed/translation_start.py RUN TEXT --old PATH

The first lines of TEXT are translated by new processes in three ways: by plain
graphs (`--no-compile`), compiled by XLA with an empty cache, and compiled with
the cache of the command before. `seconds` are those of the processor, over all
cores, so that what else runs on the machine does not count; `elapsed` are those
that passed. Medians over a few rounds, in which the ways alternate, are
appended to `results/translation_start.csv`. `xla/tuned.py` says
from how many tokens on `translate` compiles.

Use an environment without rouge-score (the extras `rouge` and `dev`), as most
users have: where it is installed keras-hub imports it at each start, with all
of nltk.

With `--old PATH`, another checkout of this repository translates the same lines
in turns with this one, in the two compiled ways. The row then has the speed of
this checkout relative to the other one, by the seconds that passed.
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

from benchmarks.shared.result_rows import append_row, git_commit, provenance
from keras_deepnmt.translator.loading import read_summary

REPOSITORY = Path(__file__).parents[2]
WAYS = ("plain", "compiled", "cached")
COMPILED_WAYS = WAYS[1:]


def process_seconds(run, text, folder, way, checkout):
    """Translates a file in a new process, with the package of a checkout.

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
            "PYTHONPATH": str(checkout),
            "DEEPNMT_CACHE": str(folder),
        },
        # Python imports from there before PYTHONPATH.
        cwd=checkout,
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


def relative_speeds(elapsed, old_elapsed):
    """Returns the columns of this checkout's speed relative to another one.

    Both map a way to the seconds of all rounds. The columns are empty if the
    other checkout took no part.
    """
    columns = {}
    for way in COMPILED_WAYS:
        ratios = [
            old / new
            for new, old in zip(elapsed[way], old_elapsed[way], strict=False)
        ]
        for name, choose in (
            ("median", statistics.median),
            ("min", min),
            ("max", max),
        ):
            columns[f"{way}_relative_to_old_{name}"] = (
                round(choose(ratios), 3) if ratios else ""
            )
    return columns


def measure(run, lines, rounds, old):
    """Returns the columns of one number of lines."""
    seconds = {way: [] for way in WAYS}
    elapsed = {way: [] for way in WAYS}
    old_elapsed = {way: [] for way in COMPILED_WAYS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "text"
        text.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
        for _ in range(rounds):
            # `cached` comes after `compiled`, whose cache it reads.
            for way in WAYS:
                found = process_seconds(
                    run, text, folder / "cache", way, REPOSITORY
                )
                seconds[way].append(found[0])
                elapsed[way].append(found[1])
            for way in COMPILED_WAYS if old else ():
                found = process_seconds(run, text, folder / "old", way, old)
                old_elapsed[way].append(found[1])
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
        "old_commit": git_commit(old) if old else "",
        **relative_speeds(elapsed, old_elapsed),
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
        "--old",
        type=Path,
        metavar="PATH",
        help="another checkout of this repository, to compare with",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "translation_start.csv",
    )
    options = parser.parse_args()
    run = options.run.resolve()
    old = options.old.resolve() if options.old else None
    summary = read_summary(run)
    lines = options.text.read_text(encoding="utf-8").splitlines()
    for count in options.lines:
        row = {
            **provenance("tensorflow", "keras"),
            "recipe": summary["name"],
            "parameters": summary["parameters"],
            **measure(run, lines[:count], options.rounds, old),
        }
        append_row(options.output, row)
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
