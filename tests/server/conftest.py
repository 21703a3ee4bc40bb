"""Servers without a model."""

import pytest
from toy_server import ToyServer


@pytest.fixture
def make_server():
    """Makes a `ToyServer` that is ready."""
    made = []

    def make(**options):
        made.append(ToyServer(**options))
        if made[-1].engine.is_warm.is_set():
            made[-1].wait_until_ready()
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def server(make_server):
    return make_server()
