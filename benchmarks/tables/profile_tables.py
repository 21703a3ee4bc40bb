"""The tables of where time goes, by kinds of operations."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "speed" / "results"
_ATTENTION = {
    "layer": "`MultiHeadAttention` (ms)",
    "fused": "Keras, fused kernels (ms)",
    "unfused": "Keras, other kernels (ms)",
}


def profile_tables():
    """Returns the Markdown blocks of the tables of profiles."""
    return [
        *_profile(
            "step_profile.csv",
            "Where the time of a training step goes",
            "Shares of the time of all operations of forward and backward "
            "pass.",
            "step_ms_median",
        ),
        *_parts_of_updates(),
        *_fused_attention(),
        *_profile(
            "decoding_profile.csv",
            "Where the time of a search goes",
            "Shares of the time of all operations of a search of 32 sentences "
            "with 4 beams and 32 steps.",
            "search_ms_median",
        ),
    ]


def dimensions(row):
    """Describes the sizes of a row's model."""
    layers = row.get("num_layers") or row["num_encoder_layers"]
    return f"{layers}+{layers} layers, width {row['hidden_dim']}"


def _profile(file, heading, shares_of, milliseconds):
    """The newest profile of each model, one column for a model."""
    rows = newest_rows(read_rows(RESULTS / file), "model", "kind")
    # A profile has the date and commit of its newest rows only.
    newest = {row["model"]: (row["date"], row["commit"]) for row in rows}
    rows = [
        row
        for row in rows
        if (row["date"], row["commit"]) == newest[row["model"]]
    ]
    if not rows:
        return []
    models = list(dict.fromkeys(row["model"] for row in rows))
    shares = {(row["model"], row["kind"]): row["share"] for row in rows}
    kinds = dict.fromkeys(row["kind"] for row in rows)
    of_model = {row["model"]: row for row in rows}
    limits = [
        f"{dimensions(of_model[name])}: {of_model[name][milliseconds]} ms,"
        f" its matrix products at the peak {of_model[name]['limit_ms']} ms"
        for name in models
    ]
    cells = [
        [
            kind,
            *(
                f"{100 * float(shares[name, kind]):.0f} %"
                if (name, kind) in shares
                else ""
                for name in models
            ),
        ]
        for kind in kinds
    ]
    headings = ["operations", *(dimensions(of_model[m]) for m in models)]
    return [
        f"### {heading}",
        markdown_table(headings, cells),
        f"{shares_of} {'; '.join(limits)}. {measured_when_and_where(rows)}",
    ]


def _parts_of_updates():
    """The time of the optimizer and of Python beside that of the gradients."""
    rows = newest_rows(
        read_rows(RESULTS / "update_parts.csv"),
        *("model", "batch_size", "optimizer"),
    )
    if not rows:
        return []
    parts = ("gradients_ms", "optimizer_ms", "empty_ms")
    cells = []
    for row in rows:
        milliseconds = [float(row[part]) for part in parts]
        cells.append(
            [
                dimensions(row),
                f"{int(row['batch_size']) * int(row['length']):,}",
                row["optimizer"],
                *(
                    f"{value:.1f} ({100 * value / sum(milliseconds):.1f} %)"
                    for value in milliseconds
                ),
                f"{float(row['update_ms']):.1f}",
            ]
        )
    headings = [
        *("Transformer", "target tokens of a batch", "optimizer"),
        "forward and backward pass (ms, share)",
        "change of the weights (ms, share)",
        "Python between updates (ms, share)",
        "both passes and the change in one call (ms)",
    ]
    return [
        "### What an update takes beside its gradients",
        markdown_table(headings, cells),
        "Shares are of the sum of the three. Medians of "
        f"{rows[0]['rounds']} rounds. {measured_when_and_where(rows)}",
    ]


def _fused_attention():
    """The time of a layer of attention with fused kernels and without."""
    rows = newest_rows(
        read_rows(RESULTS / "fused_attention.csv"),
        *("dtype", "length", "is_decoder"),
    )
    if not rows:
        return []
    cells = [
        [
            "decoder" if row["is_decoder"] == "True" else "encoder",
            row["length"],
            *(f"{float(row[f'{way}_ms']):.2f}" for way in _ATTENTION),
            f"{float(row['layer_ms']) / float(row['fused_ms']):.2f}",
        ]
        for row in rows
    ]
    headings = ["self-attention of", "tokens of a row", *_ATTENTION.values()]
    row = rows[0]
    return [
        "### Fused attention on a GPU",
        markdown_table([*headings, "our time / fused time"], cells),
        "Forward and backward pass of one layer of self-attention, with its "
        f"projections, without dropout: width {row['width']}, "
        f"{row['num_heads']} heads, {row['dtype']}, "
        f"{int(row['batch_tokens']):,} positions in a batch, JAX "
        f"{row['jax']} on one {row['device']}. Medians of {row['rounds']} "
        f"rounds, measured {row['date']}.",
    ]
