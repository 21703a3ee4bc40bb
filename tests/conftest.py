"""What every test may ask for: the real corpora, where they are."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def corpora_dir():
    """The folder of real corpora, or a skip with the reason."""
    folder = Path(
        os.environ.get("DEEPNMT_DATA", REPOSITORY.parent / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(f"No real corpora at {folder}; set DEEPNMT_DATA.")
    return folder
