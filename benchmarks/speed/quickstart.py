"""How long `deepnmt quickstart` takes, and the BLEU that it reaches.

    python benchmarks/speed/quickstart.py --rounds 3

The command runs in a new process with an empty cache of compilations and an
empty folder. Seconds are those of the clock, from the start of the process to
its end, and of each stage that it prints. One row for each round is appended to
`results/quickstart.csv`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

REPOSITORY = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "quickstart.csv"
# The beginning of the line that each stage prints, by the name of its column.
STAGES = {
    "corpus": "Writing a German-English corpus",
    "preparation": "Preparing",
    "training": "Training",
    "evaluation": "Translating the test set",
    "export": "Exporting a SavedModel",
    "end": "Done",
}


def measure(scale):
    """Runs the command once; returns the columns of its row."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["quickstart", "--scale", scale]
        words += ["--output", f"{folder}/quickstart"]
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "keras_deepnmt", *words],
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY),
                "DEEPNMT_CACHE": f"{folder}/cache",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.monotonic() - start
    return {
        "scale": scale,
        "seconds": round(seconds, 1),
        **stage_seconds(done.stderr),
        **bleu_of(done.stdout),
    }


def stage_seconds(messages):
    """Returns the seconds of each stage from the messages of the command."""
    starts = {}
    for second, title in re.findall(r"^\[ *(\d+) s\] (.*)$", messages, re.M):
        for stage, beginning in STAGES.items():
            if title.startswith(beginning):
                starts[stage] = int(second)
    return {
        f"{stage}_seconds": starts[following] - starts[stage]
        for stage, following in zip(STAGES, list(STAGES)[1:], strict=False)
    }


def bleu_of(output):
    """Returns BLEU and its signature from what the command prints."""
    bleu, signature = re.search(
        r"^test bleu ([\d.]+) \((.*)\)$", output, re.M
    ).groups()
    return {"bleu": float(bleu), "bleu_signature": signature}


def main(argv=None):
    """Measures a few rounds."""
    parser = argparse.ArgumentParser(
        description="How long `deepnmt quickstart` takes."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", default="full", choices=["full", "smoke"])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    for _ in range(options.rounds):
        row = {**provenance(), **measure(options.scale)}
        append_row(options.output, row)
        print(f"{row['seconds']} s, BLEU {row['bleu']}")


if __name__ == "__main__":
    main()
