"""Measures the memory and time of `prepare` on synthetic pairs.

    python benchmarks/memory/prepare_memory.py --pairs 1000000

Each preparation runs in a process of its own; its peak is the kernel's
high-water mark (VmHWM, Linux). The bytes a pair are the growth of the peak
over a run of 10,000 pairs, divided by the further pairs. The tokenizer learns
from the same number of sentences in both runs, so that the memory of its
training is the same. One CSV row is printed, and appended to `--output`.
"""

import argparse
import csv
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

BASELINE_PAIRS = 10_000
REPOSITORY = Path(__file__).parents[2]


def write_pairs(folder: Path, pairs: int, seed: int = 0) -> tuple[Path, Path]:
    """Writes pairs of random words, 3 to 25 a side, drawn as words are."""
    random = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyzäöü"))
    words = np.array(
        [
            "".join(random.choice(letters, length))
            for length in random.integers(2, 12, 20_000)
        ]
    )
    paths = folder / "synthetic.en", folder / "synthetic.de"
    with open(paths[0], "w") as source, open(paths[1], "w") as target:
        for _ in range(pairs):
            for file in (source, target):
                ranks = random.zipf(1.3, random.integers(3, 26)) % len(words)
                file.write(" ".join(words[ranks]) + "\n")
    return paths


def prepare(source: str, target: str, output: str):
    """Prepares, and prints seconds and the peak in bytes."""
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.prepare import prepare_corpus
    from keras_deepnmt.data.prepare_options import PrepareOptions

    options = PrepareOptions(
        train=[CorpusOptions(source, target)],
        vocabulary_size=8_000,
        tokenizer_sentences=2 * BASELINE_PAIRS,
    )
    start = time.perf_counter()
    prepare_corpus(options, output, progress=False)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(seconds, time.process_time(), peak)


def measure(folder: Path, pairs: int) -> tuple[float, float, int]:
    """Runs one preparation; gives wall seconds, CPU seconds, peak bytes."""
    paths = write_pairs(folder, pairs)
    arguments = [*map(str, paths), str(folder / f"prepared-{pairs}")]
    done = subprocess.run(
        [sys.executable, __file__, "--run", *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, cpu_seconds, peak = done.stdout.split()
    return float(seconds), float(cpu_seconds), int(peak)


def commit() -> str:
    """Names the commit that is measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def main():
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "prepare_memory.csv",
    )
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        prepare(*arguments.run)
        return
    with tempfile.TemporaryDirectory() as folder:
        baseline = measure(Path(folder), BASELINE_PAIRS)[2]
        seconds, cpu_seconds, peak = measure(Path(folder), arguments.pairs)
    growth = (peak - baseline) / max(arguments.pairs - BASELINE_PAIRS, 1)
    row = {
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "device": f"{platform.machine()}, {os.cpu_count()} cores",
        "sentencepiece": version("sentencepiece"),
        "array_record": version("array-record"),
        "pairs": arguments.pairs,
        "peak_mib": round(peak / 2**20, 1),
        "baseline_pairs": BASELINE_PAIRS,
        "baseline_mib": round(baseline / 2**20, 1),
        "bytes_per_pair": round(growth, 1),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "pairs_per_second": round(arguments.pairs / seconds),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    new = not arguments.output.exists()
    with open(arguments.output, "a", newline="") as file:
        for stream in (file, sys.stdout):
            writer = csv.DictWriter(stream, row)
            if new or stream is sys.stdout:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    main()
