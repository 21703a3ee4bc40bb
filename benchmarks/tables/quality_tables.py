"""The tables of translation quality and of exports."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.compared_tables import compared_tables
from benchmarks.tables.deep_tables import deep_tables
from benchmarks.tables.guided_tables import guided_tables
from benchmarks.tables.length_tables import length_tables
from benchmarks.tables.markdown import count, table_section
from benchmarks.tables.number_tables import number_tables
from benchmarks.tables.precision_tables import precision_tables
from benchmarks.tables.soft_fusion_tables import soft_fusion_tables
from benchmarks.tables.trained_tables import trained_tables
from benchmarks.tables.tuned_tables import tuned_tables

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def quality_tables():
    """Returns the Markdown blocks of all tables of quality."""
    return [
        *trained_tables(),
        *tuned_tables(),
        *_export_parity(),
        *number_tables(),
        *length_tables(),
        *deep_tables(),
        *guided_tables(),
        *precision_tables(),
        *compared_tables(),
        *soft_fusion_tables(),
    ]


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
