"""Writes the tables of both READMEs from the rows in `results/`.

python benchmarks/write_tables.py

The project's README shows what a newcomer asks for first; the one in this
folder has all other tables.
"""

import csv
import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGES = {
    FOLDER.parent / "README.md": ("quality", "training_throughput"),
    FOLDER / "README.md": None,  # what no other page shows
}
START, END = "<!-- results -->", "<!-- /results -->"
TABLES = {
    "quality": (
        "Translation quality",
        [
            "recipe",
            "parameters",
            "updates",
            "training_minutes",
            "test_set",
            "bleu",
            "bleu_signature",
            "commit",
        ],
    ),
    "claims_summary": (
        "What the papers claim, on small models (means over seeds, 95 % "
        "intervals, paired differences)",
        [
            "claim",
            "metric",
            "variant",
            "seeds",
            "mean",
            "interval",
            "against",
            "difference",
            "difference_interval",
            "updates",
            "parameters",
            "commit",
        ],
    ),
    "updates_saved": (
        "Updates that dense connections save, paired by seed (share of the "
        "baseline's, 95 % interval)",
        [
            "corpus",
            "model",
            "parameters",
            "against",
            "parameters_against",
            "level",
            "val_loss",
            "updates_against",
            "updates_needed",
            "saved",
            "saved_interval",
            "seeds",
            "device",
            "commit",
        ],
    ),
    "dense_memory": (
        "Memory a token of the training step, XLA's plan",
        [
            "stack",
            "layers",
            "parameters",
            "kib_per_token",
            "exponent",
            "fit_constant",
            "fit_linear",
            "fit_quadratic",
            "machine",
            "commit",
        ],
    ),
    "published_sizes": (
        "Parameters beside those that Shen et al. (2018) print, in millions",
        [
            "data",
            "published_model",
            "model",
            "source_vocabulary_size",
            "target_vocabulary_size",
            "parameters",
            "published_millions",
            "difference",
            "within",
            "commit",
        ],
    ),
    "training_throughput": (
        "Training speed against PyTorch, CPU",
        [
            "model",
            "variant",
            "keras_tokens_per_second",
            "torch_tokens_per_second",
            "ratio_median",
            "ratio_to_plain_median",
            "peak_gflops_median",
            "peak_fraction_median",
            "target",
            "met",
            "machine",
            "commit",
        ],
    ),
    "compilation_cache": (
        "Compiling at the second start of a recipe against the first",
        [
            "recipe",
            "executables",
            "first_seconds_median",
            "second_seconds_median",
            "ratio_median",
            "machine",
            "commit",
        ],
    ),
    "layer_speed": (
        "Each paper's layer against what it replaces, CPU, float32",
        [
            "layer",
            "variant",
            "plain",
            "forward_ratio_median",
            "forward_multiply_adds_ratio",
            "training_ratio_median",
            "training_multiply_adds_ratio",
            "memory_ratio",
            "target",
            "met",
            "machine",
            "commit",
        ],
    ),
    "input_pipeline": (
        "Step time with prepared data against cached batches",
        [
            "recipe",
            "shapes",
            "real_ms_median",
            "cached_ms_median",
            "ratio_median",
            "machine",
            "commit",
        ],
    ),
    "joeynmt_throughput": (
        "Training speed against JoeyNMT, CPU, float32",
        [
            "corpus",
            "batch_tokens",
            "threads",
            "keras_tokens_per_second",
            "joeynmt_tokens_per_second",
            "ratio_median",
            "ratio_min",
            "ratio_max",
            "joeynmt",
            "torch",
            "machine",
            "commit",
        ],
    ),
    "export_parity": (
        "SavedModel against Python",
        [
            "run",
            "sentences",
            "identical_to_graph",
            "identical_to_compiled",
            "near_ties",
            "other_differences",
            "commit",
        ],
    ),
    "prepare_memory": (
        "Memory of `prepare`",
        [
            "pairs",
            "peak_mib",
            "bytes_per_pair",
            "seconds",
            "pairs_per_second",
            "commit",
        ],
    ),
}


def table(name):
    """Gives one table in Markdown, or nothing if it has no rows."""
    paths = list(FOLDER.glob(f"*/results/{name}.csv"))
    if not paths:
        return ""
    path = paths[0]
    title, columns = TABLES[name]
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [_line(column.replace("_", " ") for column in columns)]
    lines.append("|" + "---|" * len(columns))
    for row in rows:
        # A hash, shortened; an installed package has a version instead.
        row["commit"] = re.sub(r"^([0-9a-f]{10})\w*", r"\1", row["commit"])
        # A column may be newer than all rows.
        lines.append(_line(row.get(column, "") for column in columns))
    return f"{title} (`{path.relative_to(FOLDER.parent)}`):\n\n" + "\n".join(
        lines
    )


def _line(cells):
    """Joins cells; a bar inside one (of a BLEU signature) ends none."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def section(page):
    """Gives all tables of a page, between their two marks.

    Args:
        page: a path of `PAGES`.
    """
    names = PAGES[page]
    if names is None:
        shown = [name for others in PAGES.values() for name in others or ()]
        names = [name for name in TABLES if name not in shown]
    tables = [text for text in map(table, names) if text]
    return "\n\n".join([START, *tables, END])


def main():
    """Replaces the tables of both pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        before, rest = text.split(START)
        after = rest.split(END)[1]
        page.write_text(before + section(page) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
