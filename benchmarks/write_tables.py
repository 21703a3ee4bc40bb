"""Writes the tables of all pages from the CSV files in `results/` folders.

    python benchmarks/write_tables.py

Replaces everything between the marks `<!-- results -->` and
`<!-- /results -->` in the project's README, in the READMEs of the folders
here, in `docs/text.md`, `docs/training.md`, `docs/exchange.md`,
`docs/papers.md`, `docs/scale.md`, `docs/serving.md` and
`docs/trained_models.md`. The project's README has only the most important rows.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.tables.added_layers_tables import added_layers_table
from benchmarks.tables.bfloat16_tables import training_speed_summary
from benchmarks.tables.claims_tables import claims_table
from benchmarks.tables.ctranslate2_tables import ctranslate2_table
from benchmarks.tables.decoding_tables import decoding_summary
from benchmarks.tables.exchange_tables import (
    checkpoint_table,
    exchange_table,
    marian_export_table,
    marian_table,
    torch_table,
)
from benchmarks.tables.letter_case_tables import letter_case_table
from benchmarks.tables.load_tables import load_table
from benchmarks.tables.memory_tables import memory_tables
from benchmarks.tables.onnx_tables import onnx_table
from benchmarks.tables.package_model_tables import package_model_table
from benchmarks.tables.quality_tables import quality_tables
from benchmarks.tables.saved_model_tables import saved_model_table
from benchmarks.tables.scale_tables import scale_tables
from benchmarks.tables.scaling_tables import scaling_tables
from benchmarks.tables.speed_tables import speed_tables
from benchmarks.tables.trained_tables import trained_summary

FOLDER = Path(__file__).parent
START, END = "<!-- results -->", "<!-- /results -->"
# Functions that return the Markdown blocks of each page.
PAGES = {
    FOLDER.parent / "README.md": lambda: [
        *trained_summary(),
        *training_speed_summary(),
        *decoding_summary(),
    ],
    FOLDER / "speed" / "README.md": speed_tables,
    FOLDER / "quality" / "README.md": quality_tables,
    FOLDER / "memory" / "README.md": memory_tables,
    FOLDER / "scaling" / "README.md": scaling_tables,
    FOLDER.parent / "docs" / "text.md": letter_case_table,
    FOLDER.parent / "docs" / "training.md": added_layers_table,
    FOLDER.parent / "docs" / "exchange.md": lambda: [
        *exchange_table(),
        *torch_table(),
        *checkpoint_table(),
        *marian_table(),
        *marian_export_table(),
        *ctranslate2_table(),
        *onnx_table(),
        *saved_model_table(),
    ],
    FOLDER.parent / "docs" / "papers.md": claims_table,
    FOLDER.parent / "docs" / "scale.md": scale_tables,
    FOLDER.parent / "docs" / "serving.md": load_table,
    FOLDER.parent / "docs" / "trained_models.md": package_model_table,
}


def section(page):
    """Returns the generated part of a page of `PAGES`, with its two marks."""
    return "\n\n".join([START, *PAGES[page](), END])


def main():
    """Replaces the generated parts of all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        before, rest = text.split(START)
        after = rest.split(END)[1]
        page.write_text(before + section(page) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
