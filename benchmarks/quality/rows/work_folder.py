"""The options of the scripts that train rows in a work folder."""

from pathlib import Path

from benchmarks.shared.result_rows import REPOSITORY


def add_work_folder(parser):
    """Adds `--folder` and `--scale` to an `argparse` parser."""
    parser.add_argument(
        "--folder",
        type=Path,
        default=REPOSITORY / "runs" / "quality_table",
        help="work folder (default: runs/quality_table in the repository)",
    )
    parser.add_argument(
        "--scale",
        choices=("full", "smoke"),
        default="full",
        help="smoke: a tiny corpus and four updates, to try the script",
    )
