"""The tables of speed: training, translation, exports, quickstart."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.bfloat16_tables import bfloat16_tables
from benchmarks.tables.decoding_tables import decoding_tables
from benchmarks.tables.gpu_tables import gpu_tables
from benchmarks.tables.markdown import (
    count,
    decimals,
    newest_rows,
    ratio,
    ratio_range,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "speed" / "results"
STEPS = {
    "plain": "plain",
    "1 replica": "mirrored strategy, 1 replica",
    "2 replicas": "mirrored strategy, 2 replicas",
    "2 parts": "gradients accumulated over 2 parts",
    "bfloat16": "mixed_bfloat16",
}


def speed_tables():
    """Returns the Markdown blocks of all tables of speed."""
    return [
        *_training_steps(),
        *bfloat16_tables(),
        *gpu_tables(),
        *_convolutional_models(),
        *decoding_tables(),
        *_export_speed(),
        *_plain_graphs(),
        *_quickstart(),
    ]


def dimensions(row):
    """Describes the sizes of a row's model."""
    layers = row["num_layers"]
    return f"{layers}+{layers} layers, width {row['hidden_dim']}"


def _transformer_rows():
    """Returns all rows of Transformers, each with the variant of its step."""
    return [
        row | {"variant": row["variant"] or "plain"}
        for row in read_rows(RESULTS / "training_throughput.csv")
        if row["torch_tokens_per_second"]
    ]


def _plain_steps():
    """Returns the newest row of each Transformer's plain step."""
    rows = [row for row in _transformer_rows() if row["variant"] == "plain"]
    return newest_rows(rows, "model")


def _other_steps():
    """Returns each Transformer's newest rows of other steps.

    They get the speed of the plain step that was measured with them.
    """
    rows = _transformer_rows()
    plain_speeds = {
        _measurement(row): row["keras_tokens_per_second"]
        for row in rows
        if row["variant"] == "plain"
    }
    others = [row for row in rows if row["variant"] != "plain"]
    return [
        row | {"plain_tokens_per_second": plain_speeds[_measurement(row)]}
        for row in newest_rows(others, "model", "variant")
    ]


def _measurement(row):
    return row["date"], row["commit"], row["model"]


def _training_steps():
    return [
        *table_section(
            "Training step compared with PyTorch",
            _plain_steps(),
            {
                "Transformer": dimensions,
                "keras_deepnmt (target tokens/s)": lambda row: count(
                    row["keras_tokens_per_second"]
                ),
                "PyTorch (target tokens/s)": lambda row: count(
                    row["torch_tokens_per_second"]
                ),
                "speed relative to PyTorch": lambda row: ratio(
                    row["ratio_median"]
                ),
                "range over rounds": lambda row: ratio_range(row, "ratio"),
                "fraction of the matrix-product peak": lambda row: (
                    f"{float(row['peak_fraction_median']):.0%}"
                ),
            },
        ),
        *table_section(
            "Other training steps compared with the plain one",
            _other_steps(),
            {
                "Transformer": dimensions,
                "training step": lambda row: STEPS[row["variant"]],
                "target tokens/s": lambda row: count(
                    row["keras_tokens_per_second"]
                ),
                "plain step's target tokens/s": lambda row: count(
                    row["plain_tokens_per_second"]
                ),
                "speed relative to the plain step": lambda row: ratio(
                    row["ratio_to_plain_median"]
                ),
                "range over rounds": lambda row: ratio_range(
                    row, "ratio_to_plain"
                ),
            },
            "The plain steps are those that alternated with these.",
        ),
    ]


def _convolutional_models():
    rows = [
        row
        for row in read_rows(RESULTS / "training_throughput.csv")
        if row["model"].startswith("conv_")
    ]
    return table_section(
        "Dense compared with residual convolutional models",
        newest_rows(rows, "model", "variant"),
        {
            "convolutional model": lambda row: f"`{row['variant']}`",
            "dimensions": dimensions,
            "target tokens/s": lambda row: count(
                row["keras_tokens_per_second"]
            ),
            "speed relative to the residual model": lambda row: ratio(
                row["ratio_to_plain_median"]
            ),
            "range over rounds": lambda row: ratio_range(row, "ratio_to_plain"),
            "target": _target,
        },
    )


def _target(row):
    if not row["target"]:
        return ""
    value = row["target"].split()[-1]
    return f"≥ {value}: {'met' if row['met'] == 'True' else 'not met'}"


def _export_speed():
    return table_section(
        "Exports",
        read_rows(RESULTS / "export_speed.csv"),
        {
            "recipe": lambda row: f"`{row['recipe']}`",
            "sentences in a batch": lambda row: row["batch"],
            "speed": lambda row: ratio(row["speed_median"]),
            "range": lambda row: (
                f"{decimals(row['speed_min'], 2)} to "
                f"{decimals(row['speed_max'], 2)}"
            ),
            "sentences/s": lambda row: decimals(
                row["new_sentences_per_second"], 1
            ),
            "compared with": lambda row: f"`{row['old_commit']}`",
            "its sentences/s": lambda row: decimals(
                row["old_sentences_per_second"], 1
            ),
        },
        "Exports of the same run by two versions of this package, loaded into "
        "one process.",
    )


def _plain_graphs():
    return table_section(
        "Searches without XLA",
        read_rows(RESULTS / "plain_graphs.csv"),
        {
            "backend": lambda row: row["backend"],
            "batch": lambda row: f"{row['rows']} x {row['length']}",
            "time of a compiled search (ms)": lambda row: decimals(
                row["compiled_ms"], 0
            ),
            "without XLA (ms)": lambda row: decimals(row["plain_ms"], 0),
            "ratio": lambda row: decimals(row["ratio_median"], 1),
            "range": lambda row: (
                f"{decimals(row['ratio_min'], 1)} to "
                f"{decimals(row['ratio_max'], 1)}"
            ),
            "first compiled search (s)": lambda row: decimals(
                row["compiled_first_s"], 1
            ),
            "first one without XLA (s)": lambda row: decimals(
                row["plain_first_s"], 1
            ),
        },
        "On TensorFlow a plain graph, traced once for all shapes, on JAX one "
        "operation after another. Other work ran on the machine, by which "
        "the times of single searches vary: the ratio is the median of those "
        "of the rounds, and not that of the two medians.",
    )


def _quickstart():
    rows = read_rows(RESULTS / "quickstart.csv")
    # Those of the last measured commit, one for each round.
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    return table_section(
        "Quickstart",
        rows,
        {
            "whole command (s)": lambda row: row["seconds"],
            "training (s)": lambda row: row["training_seconds"],
            "test set (s)": lambda row: row["evaluation_seconds"],
            "export (s)": lambda row: row["export_seconds"],
            "test BLEU": lambda row: decimals(row["bleu"], 1),
        },
        "With an empty cache of compilations; one row for each round, with "
        f"the same seed. BLEU: `{rows[0]['bleu_signature']}`."
        if rows
        else "",
    )
