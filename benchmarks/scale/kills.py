"""Kills workers and the whole of `deepnmt translate-files` at random moments.

    python benchmarks/scale/kills.py
    python benchmarks/scale/kills.py --workers-killed 5 --commands-killed 1

A command with two workers translates the sentences of the bundled corpus with a
bundled model. First workers are killed (SIGKILL), then the command itself with
all its processes, after which it is started again. At the end each line must
be what a command that nobody kills has written in its place: it is neither
lost nor there twice. One row is appended to `results/kills.csv`.
"""

import argparse
import gzip
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from keras_deepnmt.data.demo import demo_pairs

RESULTS = Path(__file__).parent / "results" / "kills.csv"
REPOSITORY = Path(__file__).parents[2]
NAMES = ("a.de.gz", "b.de.gz", "c.de.gz")


def start(folder, output):
    """Starts the command."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "keras_deepnmt", "translate-files"),
            *("transformer_tiny.demo_de_en", "--input", folder / "*.gz"),
            *("--output", output, "--workers", "2", "--block-lines", "64"),
            *("--num-beams", "1", "--no-compile"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.DEVNULL,
    )


def workers_of(process):
    """Returns the processes of the workers of a command."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
        return [one for one in below if one.name().startswith("ray::_Worker")]
    except psutil.NoSuchProcess:
        return []


def read(folder):
    """Returns the lines of all files of translations."""
    return [
        gzip.decompress((folder / name).read_bytes()).decode().splitlines()
        for name in NAMES
    ]


def main():
    """Kills, compares, and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=6000)
    parser.add_argument("--workers-killed", type=int, default=20)
    parser.add_argument("--commands-killed", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-seconds", type=float, default=12.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    sentences = [pair.source for pair in demo_pairs(given.lines)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number, name in enumerate(NAMES):
            text = "".join(f"{s}\n" for s in sentences[number :: len(NAMES)])
            (folder / name).write_bytes(gzip.compress(text.encode()))
        code = start(folder, "whole").wait()
        if code:
            raise RuntimeError(f"The command ended with {code}.")
        whole = read(folder / "whole")
        killed = {"workers": 0, "commands": 0}
        starts = 0
        code = None
        while code is None:
            process = start(folder, "killed")
            starts += 1
            code = process.poll()
            while code is None:
                time.sleep(draw.uniform(0, given.most_seconds))
                workers = workers_of(process)
                if killed["workers"] < given.workers_killed and workers:
                    draw.choice(workers).kill()
                    killed["workers"] += 1
                    print("killed", killed, flush=True)
                elif (
                    killed["commands"] < given.commands_killed
                    and workers
                    and killed["workers"] >= given.workers_killed
                ):
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    killed["commands"] += 1
                    print("killed", killed, flush=True)
                    break
                code = process.poll()
        if code:
            raise RuntimeError(f"The command ended with {code}.")
        found = read(folder / "killed")
    pairs = list(zip(whole, found, strict=True))
    row = {
        **provenance("tensorflow", "keras", "ray"),
        "seed": given.seed,
        "lines": given.lines,
        "workers_killed": killed["workers"],
        "commands_killed": killed["commands"],
        "starts": starts,
        "lines_missing": sum(max(0, len(a) - len(b)) for a, b in pairs),
        "lines_too_many": sum(max(0, len(b) - len(a)) for a, b in pairs),
        "lines_that_differ": sum(
            x != y for a, b in pairs for x, y in zip(a, b, strict=False)
        ),
    }
    print(row)
    append_row(given.output, row)


if __name__ == "__main__":
    main()
