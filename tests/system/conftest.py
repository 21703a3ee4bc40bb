"""Slow tests run when asked for: `python -m pytest -m slow`."""

import pytest


def pytest_collection_modifyitems(config, items):
    if config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip("Slow; runs with -m slow."))
