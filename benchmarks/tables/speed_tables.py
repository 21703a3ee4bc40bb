"""The tables of speed: training, translation, start-up time and layers."""

import math
from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.speed.joeynmt_throughput import TOLERANCE
from benchmarks.tables.decoding_tables import decoding_tables
from benchmarks.tables.markdown import (
    count,
    decimals,
    markdown_table,
    measured_when_and_where,
    newest_rows,
    ratio,
    ratio_range,
    table_section,
)
from benchmarks.tables.profile_tables import dimensions, profile_tables

RESULTS = Path(__file__).parents[1] / "speed" / "results"
STEPS = {
    "plain": "plain",
    "1 replica": "mirrored strategy, 1 replica",
    "2 replicas": "mirrored strategy, 2 replicas",
    "2 parts": "gradients accumulated over 2 parts",
    "bfloat16": "mixed_bfloat16",
}
CORPORA = {"multi30k_tok_en_de": "Multi30k, English-German"}


def speed_tables():
    """Returns the Markdown blocks of all tables of speed."""
    return [
        *_training_steps(),
        *profile_tables(),
        *_convolutional_models(),
        *_joeynmt(),
        *decoding_tables(),
        *_padding(),
        *_input_pipeline(),
        *_compilation_cache(),
        *_first_updates(),
        *_freed_memory(),
        *_translation_start(),
        *_export_speed(),
        *_quickstart(),
        *_paired_tests(),
        *_layers(),
    ]


def speed_summary():
    """Returns a short table of training speed, for the project's README."""
    rows = _plain_steps()
    if not rows:
        return []
    headings = [
        "Transformer",
        "keras_deepnmt (target tokens/s)",
        "PyTorch (target tokens/s)",
        "speed relative to PyTorch",
    ]
    cells = [
        [
            dimensions(row),
            count(row["keras_tokens_per_second"]),
            count(row["torch_tokens_per_second"]),
            ratio(row["ratio_median"]),
        ]
        for row in rows
    ]
    return [
        "Training speed compared with `torch.nn.Transformer` "
        "([more](benchmarks/speed/README.md)). "
        f"{measured_when_and_where(rows)}",
        markdown_table(headings, cells),
    ]


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


def _joeynmt():
    """The table of JoeyNMT; only rows with equally many tokens an update."""
    rows = [
        row
        for row in read_rows(RESULTS / "joeynmt_throughput.csv")
        if math.isclose(
            float(row["joeynmt_tokens_per_update"]),
            float(row["keras_tokens_per_update"]),
            rel_tol=TOLERANCE,
        )
    ]
    return table_section(
        "Training compared with JoeyNMT",
        newest_rows(rows, "corpus"),
        {
            "corpus": lambda row: CORPORA.get(row["corpus"], row["corpus"]),
            "target tokens per update": lambda row: count(
                row["keras_tokens_per_update"]
            ),
            "JoeyNMT's": lambda row: count(row["joeynmt_tokens_per_update"]),
            "keras_deepnmt (target tokens/s)": lambda row: count(
                row["keras_tokens_per_second"]
            ),
            "JoeyNMT (target tokens/s)": lambda row: count(
                row["joeynmt_tokens_per_second"]
            ),
            "speed relative to JoeyNMT": lambda row: ratio(row["ratio_median"]),
            "range over rounds": lambda row: ratio_range(row, "ratio"),
        },
    )


def _padding():
    rows = newest_rows(
        read_rows(RESULTS / "padding.csv"), "recipe", "batch_tokens", "shapes"
    )

    def percent(column):
        return lambda row: f"{100 * float(row[column]):.1f}%"

    return table_section(
        "Padding",
        rows,
        {
            "recipe": lambda row: f"`{row['recipe']}`",
            "target tokens of a batch": lambda row: count(row["batch_tokens"]),
            "batch shapes": lambda row: row["shapes"],
            "batches per epoch": lambda row: count(row["batches"]),
            "padding": percent("padding"),
            "least possible": percent("least_padding"),
            "in source rows": percent("source_padding"),
            "in target rows": percent("target_padding"),
            "rows of padding": percent("row_padding"),
            "search (s)": lambda row: decimals(row["search_seconds"], 1),
        },
        "Padding is the share of an epoch's tokens on both sides. No choice of "
        "so many shapes has less than the least possible as long as every pair "
        "has a row of its own.",
    )


def _input_pipeline():
    return table_section(
        "Cost of the input pipeline",
        read_rows(RESULTS / "input_pipeline.csv"),
        {
            "recipe": lambda row: f"`{row['recipe']}`",
            "batch shapes": lambda row: row["shapes"],
            "update with the input pipeline (ms)": lambda row: decimals(
                row["real_ms_median"], 1
            ),
            "update with cached batches (ms)": lambda row: decimals(
                row["cached_ms_median"], 1
            ),
            "ratio": lambda row: ratio(row["ratio_median"]),
            "range over rounds": lambda row: ratio_range(row, "ratio"),
        },
    )


def _first_updates():
    return table_section(
        "First updates",
        newest_rows(
            read_rows(RESULTS / "first_updates.csv"), "backend", "shapes"
        ),
        {
            "backend": lambda row: row["backend"],
            "shapes": lambda row: row["shapes"],
            "one by one (s)": lambda row: decimals(
                row["one_by_one_seconds_median"], 1
            ),
            "ahead (s)": lambda row: decimals(row["ahead_seconds_median"], 1),
            "ratio": lambda row: ratio(row["ratio_median"]),
            "range over rounds": lambda row: ratio_range(row, "ratio"),
            "peak memory (MiB)": lambda row: (
                f"{row['ahead_peak_mib']}, one by one "
                f"{row['one_by_one_peak_mib']}"
            ),
        },
        "The first 60 updates of `transformer_tiny`, with compilation. In a "
        "trial, the shapes to come were compiled in threads: on TensorFlow "
        "while the first ones trained, on JAX before them. It saved little "
        "time in a run of thousands of updates and, on TensorFlow, needed 1 GB "
        "more memory, so it was removed together with its script.",
    )


def _compilation_cache():
    return table_section(
        "Compilation cache",
        newest_rows(read_rows(RESULTS / "compilation_cache.csv"), "recipe"),
        {
            "recipe": lambda row: f"`{row['recipe']}`",
            "compiled programs": lambda row: row["executables"],
            "compile time of the first run (s)": lambda row: decimals(
                row["first_seconds_median"], 1
            ),
            "compile time of the second run (s)": lambda row: decimals(
                row["second_seconds_median"], 1
            ),
            "ratio": lambda row: ratio(row["ratio_median"]),
        },
    )


def _freed_memory():
    def of_both(name, digits):
        return lambda row: ", ".join(
            decimals(row[f"{way}_{name}"], digits)
            for way in ("returned", "kept")
        )

    return table_section(
        "Freed memory",
        read_rows(RESULTS / "freed_memory.csv"),
        {
            "Transformer": lambda row: row["configuration"],
            "speed with kept memory": lambda row: ratio(row["speed_median"]),
            "range": lambda row: (
                f"{decimals(row['speed_min'], 2)} to "
                f"{decimals(row['speed_max'], 2)}"
            ),
            "processor time of an update (s)": of_both("processor_seconds", 3),
            "in the system (s)": of_both("system_seconds", 3),
            "new pages of an update": of_both("pages", 0),
            "peak memory (MiB)": of_both("peak_mib", 0),
        },
        "Updates per second of a process that keeps the memory it frees, as "
        "`deepnmt train` does, relative to one that returns it to the system. "
        "The other columns are of the process that returns it, and of the one "
        "that keeps it.",
    )


def _translation_start():
    return table_section(
        "First translations of a command",
        newest_rows(
            read_rows(RESULTS / "translation_start.csv"),
            "recipe",
            "lines",
            "old_commit",
        ),
        {
            "recipe": lambda row: f"`{row['recipe']}`",
            "lines": lambda row: row["lines"],
            "source tokens": lambda row: row["tokens"],
            "plain graphs (s)": lambda row: _start_seconds(row, "plain"),
            "compiled, empty cache (s)": lambda row: _start_seconds(
                row, "compiled"
            ),
            "compiled, cache of the command before (s)": lambda row: (
                _start_seconds(row, "cached")
            ),
            "compared with": lambda row: (
                f"`{row['old_commit']}`" if row["old_commit"] else ""
            ),
            "speed relative to it: compiled, cached": _relative_start,
        },
        "Seconds of the processor, over all cores, and those that passed. "
        "The relative speeds, with their range over rounds, are by the latter: "
        "they say what was gained by also keeping what TensorFlow traces for "
        "the next command. That was removed, since it gained little on a text "
        "of usual length.",
    )


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


def _relative_start(row):
    """Formats the speeds relative to another commit, if there is one."""
    speeds = [
        [
            decimals(row[f"{way}_relative_to_old_{name}"], 2)
            for name in ("median", "min", "max")
        ]
        for way in ("compiled", "cached")
        if row["old_commit"]
    ]
    return ", ".join(
        f"{speed} ({low} to {high})" for speed, low, high in speeds
    )


def _start_seconds(row, way):
    """Formats processor seconds, and the elapsed ones where they are known."""
    processor = decimals(row[f"{way}_seconds_median"], 1)
    elapsed = decimals(row.get(f"{way}_elapsed_median", ""), 1)
    return f"{processor}, {elapsed}" if elapsed else processor


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


def _paired_tests():
    rows = newest_rows(read_rows(RESULTS / "paired_tests.csv"), "metric")
    return table_section(
        "Paired bootstrap test",
        rows,
        {
            "metric": lambda row: row["metric"],
            "sentences": lambda row: count(row["sentences"]),
            "samples": lambda row: count(row["resamples"]),
            "statistics of all sentences (s)": lambda row: row[
                "counting_seconds"
            ],
            "samples of both systems (s)": lambda row: row[
                "resampling_seconds"
            ],
        },
        "sacreBLEU's test, by `compare_systems`.",
    )


def _layers():
    rows = read_rows(RESULTS / "layer_speed.csv")
    rows = newest_rows(rows, "layer", "variant", "plain")
    return table_section(
        "Single layers compared with what they replace",
        rows,
        {
            "layer and variant": _layer_and_variant,
            "compared with": lambda row: row["plain"],
            "forward time (ratio)": lambda row: ratio(
                row["forward_ratio_median"]
            ),
            "training time (ratio)": lambda row: ratio(
                row["training_ratio_median"]
            ),
            "multiply-adds in training (ratio)": lambda row: ratio(
                row["training_multiply_adds_ratio"]
            ),
            "memory in training (ratio)": lambda row: ratio(
                row["memory_ratio"]
            ),
        },
        _layer_targets(rows),
    )


def _layer_and_variant(row):
    return f"{row['layer']}, {row['variant']}"


def _layer_targets(rows):
    targets = [row for row in rows if row["target"]]
    missed = [
        f"{_layer_and_variant(row)}, compared with {row['plain']} "
        f"({row['target'].replace('<=', '≤')})"
        for row in targets
        if row["met"] != "True"
    ]
    number = len(targets) - len(missed)
    text = f"{number} of {len(targets)} rows with a target meet it"
    return text + (f"; not met: {'; '.join(missed)}." if missed else ".")
