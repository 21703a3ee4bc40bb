"""Synthetic sentence pairs, for measurements of any size."""

import time
from pathlib import Path

import numpy as np

TOKENIZER_SENTENCES = 20_000


def write_pairs(folder: Path, pairs: int, seed: int = 0) -> tuple[Path, Path]:
    """Writes pairs of 3 to 25 random words each; frequencies follow Zipf."""
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


def prepare_pairs(source: str, target: str, output: str) -> float:
    """Prepares a pair of files as training data; returns the seconds."""
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.preparation.options import PrepareOptions
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus

    options = PrepareOptions(
        train=[CorpusOptions(source, target)],
        vocabulary_size=8_000,
        tokenizer_sentences=TOKENIZER_SENTENCES,
    )
    start = time.perf_counter()
    prepare_corpus(options, output, progress=False)
    return time.perf_counter() - start
