"""Memory of a process that translates again and again, sentences of any length.

    python benchmarks/memory/repeated_calls.py RUN TEXT

RUN is a trained run and TEXT a file of source sentences. Each call translates a
few sources, each of which is one or several sentences of TEXT, so that their
lengths differ as those of a document's lines do. A row has the resident memory
of the process after the first 500 calls, and the least and the most after each
hundred calls from then on, for one of three sides:

* `translator`: `Translator`, compiled
* `plain`: `Translator(compiled=False)`
* `export`: the SavedModel of RUN, through `SavedModelClient`

Each side runs in a process of its own, whose memory after each hundred calls is
printed. Ctrl-C ends a side early, with a row of the calls so far. Rows are
appended to `results/repeated_calls.csv`.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions

SIDES = ("translator", "plain", "export")
EVERY = 100


def resident_mib():
    """Returns the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def draw_sources(lines, draw, most):
    """Draws 1 to `most` sources, each of 1 to 12 neighbouring lines."""
    sources = []
    for _ in range(draw.randint(1, most)):
        number = min(12, 1 + int(draw.expovariate(0.5)))
        start = draw.randrange(max(1, len(lines) - number))
        sources.append(" ".join(lines[start : start + number]))
    return sources


class Calls:
    """Translates drawn sources in calls; runs in a process of its own."""

    def start(self, side, run, text, most):
        """Loads the model."""
        self._lines = Path(text).read_text(encoding="utf-8").splitlines()
        self._draw = random.Random(0)
        self._most = most
        if side == "export":
            from keras_deepnmt.serving import SavedModelClient

            self._translate = SavedModelClient(run).translate
        else:
            from keras_deepnmt.translator import Translator

            translator = Translator.load(run, compiled=side == "translator")
            self._translate = translator.translate

    def call(self, number):
        """Makes calls; returns the memory after them, and their sentences."""
        sentences = 0
        for _ in range(number):
            sources = draw_sources(self._lines, self._draw, self._most)
            self._translate(sources)
            sentences += len(sources)
        return resident_mib(), sentences


def measure(side, run, text, options):
    """Makes the calls of one side; returns the columns of its row."""
    mib, sentences, start = [], 0, time.perf_counter()
    # After Ctrl-C the row is that of the calls so far. A shell ignores it for
    # what runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        with WorkerProcess(__file__, "--answer") as worker:
            worker("start", side, str(run), str(text), options.most)
            for calls in range(EVERY, options.calls + 1, EVERY):
                memory, number = worker("call", EVERY)
                mib.append(memory)
                sentences += number
                print(f"{side}: {calls:,} calls, {memory:,.1f} MiB", flush=True)
    seconds = time.perf_counter() - start
    after = mib[options.warm_up // EVERY - 1 :]
    if not after:
        sys.exit("Too few calls for a row.")
    calls = EVERY * len(mib)
    return {
        "side": side,
        "most_sources": options.most,
        "calls": calls,
        "warm_up": options.warm_up,
        "sentences": sentences,
        "mib_after_warm_up": round(after[0], 1),
        "mib_least": round(min(after), 1),
        "mib_most": round(max(after), 1),
        "mib_at_end": round(after[-1], 1),
        "calls_per_second": round(calls / seconds, 2),
    }


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a trained run")
    parser.add_argument("text", type=Path, help="source sentences")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=500)
    parser.add_argument(
        "--most", type=int, default=8, help="most sources of a call"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "repeated_calls.csv",
    )
    return parser.parse_args()


def main():
    """Measures and appends the rows."""
    options = parse()
    from keras_deepnmt.translator.loading import read_summary

    recipe = read_summary(options.run)["name"]
    with tempfile.TemporaryDirectory() as folder:
        for side in options.sides:
            run = options.run
            if side == "export":
                from keras_deepnmt.cli import main as deepnmt

                run = Path(folder, "export")
                deepnmt(["export", str(options.run), str(run), "--quiet"])
            row = {
                **provenance("tensorflow", "keras"),
                "recipe": recipe,
                **measure(side, run, options.text, options),
            }
            append_row(options.output, row)
            print(json.dumps(row, indent=2))


if __name__ == "__main__":
    if "--answer" in sys.argv:
        calls = Calls()
        answer_questions({"start": calls.start, "call": calls.call})
    else:
        main()
