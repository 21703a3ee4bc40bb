"""The tables of memory and of model sizes."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    markdown_table,
    millions,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "memory" / "results"
WIDEST = "256"  # embedding width of presets without a suffix


def memory_tables():
    """Returns the Markdown blocks of all tables of memory and sizes."""
    return [*_training_memory(), *_prepare_memory(), *_published_sizes()]


def _training_memory():
    return table_section(
        "Memory of a training step",
        read_rows(RESULTS / "dense_memory.csv"),
        {
            "connections": lambda row: row["stack"],
            "layers per side": lambda row: row["layers"],
            "parameters": lambda row: millions(row["parameters"]),
            "memory per token (KiB)": lambda row: decimals(
                row["kib_per_token"], 1
            ),
            "growth exponent": lambda row: decimals(row["exponent"], 2),
            "fitted memory per token with L layers (KiB)": _polynomial,
        },
    )


def _polynomial(row):
    constant = decimals(row["fit_constant"], 1)
    linear = f"{float(row['fit_linear']):+.1f}"
    quadratic = f"{float(row['fit_quadratic']):+.2f}"
    terms = f"{constant} {linear[0]} {linear[1:]} L"
    return f"{terms} {quadratic[0]} {quadratic[1:]} L²"


def _prepare_memory():
    return table_section(
        "Memory and time of `deepnmt prepare`",
        read_rows(RESULTS / "prepare_memory.csv"),
        {
            "sentence pairs": lambda row: count(row["pairs"]),
            "peak memory (MiB)": lambda row: decimals(row["peak_mib"], 1),
            "peak with 10,000 pairs (MiB)": lambda row: decimals(
                row["baseline_mib"], 1
            ),
            "memory per additional pair (bytes)": lambda row: decimals(
                row["bytes_per_pair"], 1
            ),
            "time (s)": lambda row: decimals(row["seconds"], 1),
            "sentence pairs/s": lambda row: count(row["pairs_per_second"]),
        },
    )


def _published_sizes():
    rows = read_rows(RESULTS / "published_sizes.csv")
    if not rows:
        return []
    widths = list(dict.fromkeys(row["embedding_dim"] for row in rows))
    models = {}
    for row in rows:
        key = row["data"], row["published_model"]
        models.setdefault(key, {})[row["embedding_dim"]] = row
    headings = [
        "languages",
        "model in the paper",
        "name of the preset",
        *(f"counted / published (M), width {width}" for width in widths),
    ]
    cells = [
        [
            *key,
            f"`{by_width[WIDEST]['model']}`",
            *(_sizes(by_width[width]) for width in widths),
        ]
        for key, by_width in models.items()
    ]
    within = sum(row["within"] == "True" for row in rows)
    return [
        "### Model sizes compared with Shen et al. (2018)",
        markdown_table(headings, cells),
        f"Counted {rows[-1]['date']}. Widths are those of the embeddings; the "
        "presets of smaller widths have the suffix `_embed_64` or "
        f"`_embed_128`. {within} of {len(rows)} counts are within a million of "
        "the published size; the others are in italics.",
    ]


def _sizes(row):
    text = f"{float(row['millions']):.2f} / {row['published_millions']}"
    return text if row["within"] == "True" else f"*{text}*"
