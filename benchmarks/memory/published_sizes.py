"""Our numbers of parameters beside those that Shen et al. (2018) print.

    python benchmarks/memory/published_sizes.py

Table 1 of the paper has one size, in millions and give or take one, for all
models of an embedding width; ours are counted in a TensorFlow graph, model by
model. The paper does not say how many entries the vocabularies have, but two
follow from its sizes: an embedding of width E costs (Vs + 2 Vt) E numbers, so
that the sizes at widths 64 and 256 give Vs + 2 Vt of about 47,000 for
German-English (25,000 joint merges) and 88,500 for Turkish-English (30,000
merges a side). Here they are 3 times 16,667, and 3 times 30,000. The counts go
to `results/published_sizes.csv`, which is written anew; `within` says whether
one is within a million of the printed size.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.parameter_counts import count_parameters
from benchmarks.shared.result_rows import append_rows, origin

# Embedding widths, and the paper's sizes in millions; our entries a side.
DATA = {
    "De-En": ({64: 8, 128: 11, 256: 17}, 16_667),
    "Tr-En": ({64: 11, 128: 17, 256: 28}, 30_000),
}
MODELS = {
    "BASE-4L": "conv_seq2seq_4l",
    "DenseNMT-4L-1": "dense_nmt_1_4l",
    "DenseNMT-4L-2": "dense_nmt_2_4l",
    "BASE-8L": "conv_seq2seq_8l",
    "DenseNMT-8L-1": "dense_nmt_1_8l",
    "DenseNMT-8L-2": "dense_nmt_2_8l",
}
TOLERANCE = 1.0


def preset_name(preset, embedding_dim):
    """Names the preset of a size with embeddings of some width."""
    is_widest = embedding_dim == 256
    return preset if is_widest else f"{preset}_embed_{embedding_dim}"


def make_row(data, model, embedding_dim, parameters):
    """Puts a count beside what is printed.

    Args:
        data: one of `DATA`.
        model: one of `MODELS`.
        embedding_dim: int.
        parameters: int, what was counted.

    Returns:
        Dict of columns.
    """
    printed, vocabulary_size = DATA[data]
    millions = round(parameters / 1e6, 2)
    difference = round(millions - printed[embedding_dim], 2)
    return {
        "data": data,
        "published_model": model,
        "model": preset_name(MODELS[model], embedding_dim),
        "embedding_dim": embedding_dim,
        "source_vocabulary_size": vocabulary_size,
        "target_vocabulary_size": vocabulary_size,
        "parameters": parameters,
        "millions": millions,
        "published_millions": printed[embedding_dim],
        "difference": f"{difference:+.2f}",
        "within": abs(difference) <= TOLERANCE,
    }


def main():
    """Counts every model of the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "published_sizes.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    rows = []
    for data, (printed, vocabulary_size) in DATA.items():
        for model, preset in MODELS.items():
            for embedding_dim in printed:
                parameters = count_parameters(
                    preset_name(preset, embedding_dim), [vocabulary_size] * 2
                )
                row = make_row(data, model, embedding_dim, parameters)
                rows.append(origin("tensorflow", "keras") | row)
                print(", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
    options.output.unlink(missing_ok=True)
    append_rows(options.output, rows)


if __name__ == "__main__":
    main()
