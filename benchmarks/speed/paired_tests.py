"""Measures how long sacreBLEU's paired bootstrap test takes.

    python benchmarks/speed/paired_tests.py

Two systems with random errors are compared on 3,000 made sentences of 20 words,
with 1,000 samples (`compare_systems`, as in `deepnmt evaluate A B`). `counting`
is the time without resampling: the statistics of each sentence, which are
computed once. `resampling` is the rest. Medians of several rounds are appended
to `results/paired_tests.csv`.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from keras_deepnmt.evaluation import compare_systems

WORDS_PER_SENTENCE = 20
VOCABULARY = 5_000


def made_sentences(number, seed=1):
    """Returns references, and translations by two systems with errors."""
    rng = np.random.default_rng(seed)
    shape = number, WORDS_PER_SENTENCE
    reference = rng.integers(VOCABULARY, size=shape)
    systems = [
        np.where(rng.random(shape) < rate, rng.integers(VOCABULARY), reference)
        for rate in (0.30, 0.32)
    ]
    return [
        [" ".join(f"w{word}" for word in row) for row in text]
        for text in (reference, *systems)
    ]


def seconds_of(metric, texts, num_resamples):
    """Times one comparison, with as good as no randomization test."""
    reference, system, baseline = texts
    start = time.perf_counter()
    compare_systems(
        system,
        baseline,
        reference,
        [metric],
        num_resamples=num_resamples,
        num_trials=1,
    )
    return time.perf_counter() - start


def measure(metric, texts, num_resamples, rounds):
    """Returns a row with the medians of a metric."""
    counting, whole = [], []
    for _ in range(rounds):
        counting.append(seconds_of(metric, texts, 1))
        whole.append(seconds_of(metric, texts, num_resamples))
    # Both tests of a comparison count the statistics.
    return {
        **provenance("sacrebleu", "numpy"),
        "metric": metric,
        "sentences": len(texts[0]),
        "resamples": num_resamples,
        "rounds": rounds,
        "counting_seconds": round(statistics.median(counting) / 2, 3),
        "resampling_seconds": round(
            statistics.median(
                long - short
                for long, short in zip(whole, counting, strict=True)
            ),
            3,
        ),
    }


def main():
    """Measures all metrics and appends their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=3_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--metrics", nargs="+", default=["bleu", "chrf"])
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "paired_tests.csv",
    )
    options = parser.parse_args()
    texts = made_sentences(options.sentences)
    for metric in options.metrics:
        row = measure(metric, texts, options.resamples, options.rounds)
        append_rows(options.output, [row])
        print(
            f"{metric}: {row['counting_seconds']} s counting, "
            f"{row['resampling_seconds']} s for {options.resamples:,} samples"
        )


if __name__ == "__main__":
    main()
