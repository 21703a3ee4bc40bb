"""Parameter counts, compared with the sizes published by Shen et al. (2018).

    python benchmarks/memory/published_sizes.py

Table 1 of the paper gives one size per embedding width, in millions and
accurate to a million, for all of its models. Here every model is counted in a
TensorFlow graph. The paper does not give vocabulary sizes, but they follow from
its model sizes: an embedding of width E has (Vs + 2 Vt) E parameters, so that
the sizes for widths 64 and 256 give a Vs + 2 Vt of about 47,000 for
German-English (25,000 joint merges) and 88,500 for Turkish-English (30,000
merges per side). This script uses 3 times 16,667 and 3 times 30,000. The counts
are written to `results/published_sizes.csv`, replacing its rows; the column
`within` says whether a count is within a million of the published size.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.parameter_counts import count_parameters
from benchmarks.shared.result_rows import append_rows, provenance

# Published sizes in millions by embedding width, and our vocabulary size.
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
TOLERANCE = 1.0  # million parameters


def preset_name(preset, embedding_dim):
    """Returns the name of a model's preset with the given embedding width."""
    is_widest = embedding_dim == 256
    return preset if is_widest else f"{preset}_embed_{embedding_dim}"


def make_row(data, model, embedding_dim, parameters):
    """Returns the columns that compare a count with the published size."""
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
    """Counts every model of the paper's table."""
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
                rows.append(provenance("tensorflow", "keras") | row)
                print(", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
    options.output.unlink(missing_ok=True)
    append_rows(options.output, rows)


if __name__ == "__main__":
    main()
