"""A translator for all tests; made-up segments come from `benchmarks`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A translator that has no mask symbols."""
    from random_translators import random_translator

    return random_translator(tmp_path_factory.mktemp("plain"), [])
