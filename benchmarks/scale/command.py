"""How many lines the command of `deepnmt translate-files` itself can pass on.

    python benchmarks/scale/command.py

Its workers return the lines as they are. What is left is the work of the
command: reading and writing compressed files, and sending lines to workers. A
row has the seconds of the processor that the process of the command took, all
its threads, without those of the start. It is appended to
`results/command.csv`.
"""

import argparse
import gzip
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from keras_deepnmt.cli import main as deepnmt
from keras_deepnmt.commands import translate_files
from keras_deepnmt.commands.shards.worker import TranslatedLines
from keras_deepnmt.data.demo import demo_pairs

RESULTS = Path(__file__).parent / "results" / "command.csv"


class Echo:
    """Returns lines as they are."""

    def __init__(self, *arguments):
        pass

    def __call__(self, lines):
        """Returns the lines of a block."""
        return TranslatedLines([line.decode() for line in lines], [])


def main():
    """Measures, and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=400_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    translate_files.BlockTranslator = Echo
    sentences = "".join(f"{p.source}\n" for p in demo_pairs(10_000)).encode()
    seconds = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        number = given.lines // given.files // 10_000
        # The first imports everything, the second is for the start.
        for name, times in (("first", 1), ("start", 1), ("lines", number)):
            (folder / name).mkdir()
            files = given.files if name == "lines" else 1
            for shard in range(files):
                content = gzip.compress(sentences * times, 6)
                (folder / name / f"{shard}.de.gz").write_bytes(content)
            start = time.process_time()
            code = deepnmt(
                [
                    *("translate-files", "transformer_tiny.demo_de_en"),
                    *("--input", f"{folder}/{name}/*.gz", "--workers", "1"),
                    *("--output", f"{folder}/{name}.out"),
                ]
            )
            if code:
                raise RuntimeError(f"The command ended with {code}.")
            seconds.append(time.process_time() - start)
    row = {
        **provenance("ray"),
        "lines": given.files * number * 10_000 - 10_000,
        "command_seconds": round(seconds[2] - seconds[1], 2),
    }
    print(row)
    append_row(given.output, row)


if __name__ == "__main__":
    main()
