"""The tables of translation quality and of the papers' claims."""

from pathlib import Path

from benchmarks.quality.measuring.seed_statistics import mean_and_interval
from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    newest_rows,
    table_section,
    with_interval,
)
from benchmarks.tables.trained_tables import trained_tables

RESULTS = Path(__file__).parents[1] / "quality" / "results"
CLAIMS = {
    "positions": "Word order without position encodings (Song et al., 2018)",
    "roles": "Roles and grammatical functions (Weissenborn et al., 2019)",
    "diversity": "Diversity of layers (Dou et al., 2018)",
}
METRICS = {
    "valid_loss": "validation loss (nats per token)",
    "valid_bleu": "validation BLEU",
    "encoder_diversity": "diversity of encoder layers (0 to 1)",
    "decoder_diversity": "diversity of decoder layers (0 to 1)",
    "v_measure": "V-measure of roles and functions",
    "v_measure_chance": "V-measure of shuffled roles",
    "v_measure_over_chance": "V-measure above that of shuffled roles",
    "v_measure_token": "V-measure of the token alone",
    "roles_played": "number of different roles",
    "der_tokens": 'number of "der" tokens',
}
VARIANTS = {
    "plain": "plain attention, no positions",
    "hybrid, gated_sum": "hybrid attention (gated sum), no positions",
    "hybrid, sum": "hybrid attention (sum), no positions",
    "plain, positions": "plain attention with positions",
    "weight 0": "diversity loss with weight 0",
    "weight 1": "diversity loss with weight 1",
    "weight 0, untrained": "before training",
    "untrained": "soft roles, untrained",
    "softmax": "soft roles",
    "onehot": "one-hot roles",
}
LEVELS = {
    "baseline's best in 50 % of its updates": "in half of its updates",
    "baseline's best in 75 % of its updates": "in 3/4 of its updates",
    "baseline's best": "in all of its updates",
}
CORPORA = {"demo": "embedded corpus", "multi30k": "Multi30k"}


def quality_tables():
    """Returns the Markdown blocks of all tables of quality."""
    return [
        *trained_tables(),
        *(block for claim in CLAIMS for block in _claim(claim)),
        *_attention_initialization(),
        *_alignment_error(),
        *_updates_saved(),
        *_export_parity(),
    ]


def _claim(claim):
    rows = read_rows(RESULTS / "claims_summary.csv")
    rows = [row for row in rows if row["claim"] == claim]
    seeds, updates = (
        ", ".join(sorted({row[name] for row in rows}))
        for name in ("seeds", "updates")
    )
    return table_section(
        CLAIMS[claim],
        rows,
        {
            "measure": lambda row: METRICS[row["metric"]],
            "model": lambda row: VARIANTS[row["variant"]],
            "mean": lambda row: with_interval(row["mean"], row["interval"]),
            "difference": _difference,
            "difference from": lambda row: VARIANTS.get(row["against"], ""),
        },
        f"Means over {seeds} seeds after {updates} updates; ± is the 95 % "
        "interval.",
    )


def _difference(row):
    if not row["difference"]:
        return ""
    text = with_interval(row["difference"], row["difference_interval"])
    return text if text.startswith("-") else f"+{text}"


def _attention_initialization():
    """The table of two initializers; only the newest commit's rows count."""
    rows = read_rows(RESULTS / "attention_initialization.csv")
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    bleu = {}
    for row in rows:
        by_seed = bleu.setdefault(row["initializer"], {})
        by_seed[row["seed"]] = float(row["bleu"])
    first = next(iter(bleu), None)
    versions = sorted({row["sacrebleu"] for row in rows})
    updates = sorted({count(row["updates"]) for row in rows})
    recipes = sorted({f"`{row['recipe']}`" for row in rows})
    return table_section(
        "Initial variance of query, key and value projections",
        newest_rows(rows, "initializer"),
        {
            "initializer": lambda row: row["initializer"],
            "seeds": lambda row: str(len(bleu[row["initializer"]])),
            "test BLEU": lambda row: with_interval(
                *mean_and_interval(list(bleu[row["initializer"]].values()))
            ),
            "difference": lambda row: _paired_difference(
                bleu[row["initializer"]], bleu[first]
            ),
        },
        f"{', '.join(recipes)} after {', '.join(updates)} updates; ± is the "
        "95 % interval, the difference is from the first row, paired by seed. "
        f"BLEU is that of sacreBLEU {', '.join(versions)}, whose signature is "
        "in the CSV file.",
    )


def _paired_difference(bleu, others):
    differences = [bleu[seed] - others[seed] for seed in bleu if seed in others]
    if bleu is others or not differences:
        return ""
    text = with_interval(*mean_and_interval(differences))
    return text if text.startswith("-") else f"+{text}"


def _alignment_error():
    """The table of decoder blocks; only the newest commit's rows count."""
    rows = read_rows(RESULTS / "alignment_error.csv")
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    rates = {}
    for row in rows:
        by_seed = rates.setdefault(row["layer"], {})
        by_seed[row["seed"]] = 100 * float(row["alignment_error_rate"])
    recipes = sorted({f"`{row['recipe']}`" for row in rows})
    updates = sorted({count(row["updates"]) for row in rows})
    return table_section(
        "Word alignments from attention",
        newest_rows(rows, "layer"),
        {
            "decoder block": lambda row: (
                f"{row['layer']} of {row['decoder_blocks']}"
            ),
            "seeds": lambda row: str(len(rates[row["layer"]])),
            "alignment error rate (%)": lambda row: with_interval(
                *mean_and_interval(list(rates[row["layer"]].values()))
            ),
        },
        f"{', '.join(recipes)} after {', '.join(updates)} updates, on the 12 "
        "sentence pairs whose words are aligned by hand; lower is better.",
    )


def _updates_saved():
    rows = read_rows(RESULTS / "updates_saved.csv")
    baselines, seeds = (
        ", ".join(sorted({row[name] for row in rows}))
        for name in ("against", "seeds")
    )
    return table_section(
        "Updates that dense connections save",
        rows,
        {
            "corpus": lambda row: CORPORA[row["corpus"]],
            "dense model": lambda row: f"`{row['model']}`",
            "lowest loss of the residual model": lambda row: (
                f"{row['val_loss']} {LEVELS[row['level']]}"
            ),
            "updates of the residual model": lambda row: _updates(
                row["updates_against"]
            ),
            "updates of the dense model": lambda row: _updates(
                row["updates_needed"]
            ),
            "updates saved (%)": _percent_saved,
        },
        f"The residual model is `{baselines}`. Losses are validation losses in "
        f"nats per token, means over {seeds} seeds; updates are medians; ± is "
        "the 95 % interval of the paired differences.",
    )


def _updates(text):
    return count(text) if text.isdigit() else text


def _percent_saved(row):
    if not row["saved_interval"]:
        return row["saved"]
    saved, interval = float(row["saved"]), float(row["saved_interval"])
    return f"{100 * saved:.0f} ± {100 * interval:.0f}"


def _export_parity():
    return table_section(
        "Translations of a SavedModel compared with Python",
        read_rows(RESULTS / "export_parity.csv"),
        {
            "run folder": lambda row: f"`{row['run']}`",
            "sentences": lambda row: count(row["sentences"]),
            "same as the graph in Python": lambda row: count(
                row["identical_to_graph"]
            ),
            "same as the compiled search": lambda row: count(
                row["identical_to_compiled"]
            ),
            "near ties": lambda row: count(row["near_ties"]),
            "other differences": lambda row: count(row["other_differences"]),
        },
    )
