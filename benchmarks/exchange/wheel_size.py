"""Measures the wheel with and without the trained models of real text.

    python benchmarks/exchange/wheel_size.py

Builds the wheel from a copy of the committed files, by `pip wheel`, and again
without the folders of `keras_deepnmt/trained` whose names have `tatoeba`. A row
is appended to `results/wheel_size.csv`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import REPOSITORY, append_row, provenance

RESULTS = Path(__file__).parent / "results" / "wheel_size.csv"
LEFT_OUT = "*tatoeba*"


def main(arguments: list[str] | None = None) -> None:
    """Builds both wheels and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        subprocess.run(
            ["git", "clone", "--quiet", str(REPOSITORY), str(copy)], check=True
        )
        whole = wheel_size(copy)
        models = sorted((copy / "keras_deepnmt" / "trained").glob(LEFT_OUT))
        for folder in models:
            shutil.rmtree(folder)
        shutil.rmtree(copy / "build", ignore_errors=True)
        row = {
            **provenance("pip"),
            "models": len(models),
            "bytes": whole,
            "bytes_without": wheel_size(copy),
        }
    append_row(options.output, row)


def wheel_size(folder: Path) -> int:
    """Builds the wheel of a copy of the package, and returns its bytes."""
    with tempfile.TemporaryDirectory() as built:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet"),
                *("--no-deps", "--wheel-dir", built, str(folder)),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        (wheel,) = Path(built).glob("*.whl")
        return wheel.stat().st_size


if __name__ == "__main__":
    main()
