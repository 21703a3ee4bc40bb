"""Time of a search without XLA, relative to a compiled one.

    python benchmarks/speed/plain_graphs.py RUN TEXT
    KERAS_BACKEND=jax python benchmarks/speed/plain_graphs.py RUN TEXT

A translator of RUN searches batches of several shapes, made of the lines of
TEXT, with XLA and without. Without it, TensorFlow runs a plain graph, and JAX
one operation after another. A row has the seconds of the first search of a
shape, which compiles or traces, and the milliseconds of later ones, the median
over rounds in which both sides alternate. Rows are appended to
`results/plain_graphs.csv`.
"""

import argparse
import json
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from keras_deepnmt.masks import END_ID
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.batches import padded_batch, padded_length

# Rows, and lines in each of them.
SHAPES = ((1, 1), (4, 1), (16, 1), (1, 5), (8, 5), (16, 3))


def source_ids(tokenizer, lines, rows, joined):
    """Returns a batch: each row has as many lines as `joined` says."""
    texts = [
        " ".join(lines[row * joined : (row + 1) * joined])
        for row in range(rows)
    ]
    ids = [[*row, END_ID] for row in tokenizer.encode(texts)]
    return padded_batch(ids, rows, padded_length(max(map(len, ids))))


def seconds_of(translator, ids):
    """Returns the seconds of a search."""
    start = time.perf_counter()
    translator.search(ids)
    return time.perf_counter() - start


def measure(translators, ids, rounds):
    """Returns the columns of a row: the times of both sides."""
    first = {name: seconds_of(each, ids) for name, each in translators.items()}
    later = {name: [] for name in translators}
    for _ in range(rounds):
        for name, translator in translators.items():
            later[name].append(seconds_of(translator, ids))
    ratios = [a / b for a, b in zip(*later.values(), strict=True)]
    return {
        "rows": ids.shape[0],
        "length": ids.shape[1],
        "rounds": rounds,
        "ratio_median": round(statistics.median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
        **{
            f"{name}_ms": round(1000 * statistics.median(values), 2)
            for name, values in later.items()
        },
        **{f"{name}_first_s": round(x, 2) for name, x in first.items()},
    }


def main():
    """Measures and appends the rows."""
    import keras

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a trained run")
    parser.add_argument("text", type=Path, help="source sentences")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "plain_graphs.csv",
    )
    options = parser.parse_args()
    backend = keras.backend.backend()
    lines = options.text.read_text(encoding="utf-8").splitlines()
    translators = {
        "plain": Translator.load(options.run, compiled=False),
        "compiled": Translator.load(options.run),
    }
    tokenizer = translators["plain"].source_tokenizer
    for rows, joined in SHAPES:
        ids = source_ids(tokenizer, lines, rows, joined)
        row = {
            **provenance("keras"),
            "backend": backend,
            "backend_version": version(backend),
            "model": translators["plain"].model.name,
            "num_beams": translators["plain"].num_beams,
            **measure(translators, ids, options.rounds),
        }
        append_row(options.output, row)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
