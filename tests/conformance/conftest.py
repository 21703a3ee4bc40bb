"""Every entry of the catalogue as a fixture; costly things are made once."""

import catalog
import pytest
from shared_models import shared_graph, shared_model


@pytest.fixture(params=catalog.LAYERS, ids=catalog.identify)
def layer_entry(request):
    return request.param


@pytest.fixture(params=catalog.MODELS, ids=catalog.identify)
def model_entry(request):
    return request.param


@pytest.fixture(params=catalog.distinct_models(), ids=catalog.identify)
def distinct_entry(request):
    return request.param


@pytest.fixture
def model(distinct_entry):
    """A model of the entry; its weights are put back after the test."""
    model = shared_model(distinct_entry.name)
    weights = model.get_weights()
    yield model
    model.set_weights(weights)


@pytest.fixture
def graph(model, distinct_entry):
    """`graph(inputs)`: log-probabilities from one traced function."""
    return shared_graph(distinct_entry.name)
