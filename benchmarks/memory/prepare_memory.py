"""Peak memory and time of `deepnmt prepare` on synthetic sentence pairs.

    python benchmarks/memory/prepare_memory.py --pairs 1000000

Each preparation runs in its own process, whose peak memory is the kernel's
high-water mark (VmHWM, Linux). The bytes per pair are the difference from the
peak of a preparation of 10,000 pairs, divided by the number of additional
pairs. The tokenizer is trained on the same number of sentences in both, so that
its training takes the same memory. One CSV row is printed, and appended to
`results/prepare_memory.csv`.
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

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.synthetic_pairs import prepare_pairs, write_pairs

BASELINE_PAIRS = 10_000
REPOSITORY = Path(__file__).parents[2]


def prepare(source: str, target: str, output: str):
    """Prepares; prints wall seconds, CPU seconds and peak memory in bytes."""
    seconds = prepare_pairs(source, target, output)
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(seconds, time.process_time(), peak)


def measure(folder: Path, pairs: int) -> tuple[float, float, int]:
    """Runs one preparation; returns wall seconds, CPU seconds, peak bytes."""
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
    """Returns the short hash of the measured commit."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def main():
    """Measures and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pairs",
        type=int,
        default=1_000_000,
        help="number of synthetic sentence pairs",
    )
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
    is_new = not arguments.output.exists()
    with open(arguments.output, "a", newline="") as file:
        for stream in (file, sys.stdout):
            writer = csv.DictWriter(stream, row)
            if is_new or stream is sys.stdout:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    main()
