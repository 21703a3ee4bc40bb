"""The real corpora, where they are; some tests wait to be asked for."""

import os
import signal
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

# A shell's background job ignores Ctrl-C, and so would every process that a
# test starts in order to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def corpora_dir():
    """The folder of real corpora, or a skip with the reason."""
    folder = Path(
        os.environ.get("DEEPNMT_DATA", REPOSITORY.parent / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(f"No real corpora at {folder}; set DEEPNMT_DATA.")
    return folder


def pytest_collection_modifyitems(config, items):
    if config.option.markexpr:
        return
    for item in items:
        for name in ("slow", "thorough"):
            if item.get_closest_marker(name):
                reason = f"{name.capitalize()}; runs with -m {name}."
                item.add_marker(pytest.mark.skip(reason))
