"""A model for the tests of a file."""

import pytest
from toy_model import ToyModel


@pytest.fixture(scope="module")
def model():
    """One for all options, since other ones need no compilation."""
    return ToyModel()
