"""Where the Multi30k corpus is."""

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def find_multi30k():
    """Returns the folder that contains Multi30k.

    It is the folder that the environment variable DEEPNMT_DATA names, or
    `../shared/data`. Without Multi30k there, the script exits with a message.
    """
    default = REPOSITORY.parent / "shared" / "data"
    folder = Path(os.environ.get("DEEPNMT_DATA", default))
    if not (folder / "multi30k").is_dir():
        sys.exit(f"No Multi30k at {folder}; set DEEPNMT_DATA.")
    return folder
