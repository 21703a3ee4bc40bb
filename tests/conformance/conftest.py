"""Every entry of the catalogue as a fixture; costly things are made once."""

import catalog
import pytest
from shared_models import shared_graph, shared_model


@pytest.fixture(params=catalog.LAYERS, ids=catalog.identify)
def layer_entry(request):
    return request.param


@pytest.fixture(
    params=[
        pytest.param(
            entry,
            id=catalog.identify(entry),
            marks=getattr(pytest.mark, entry.mark) if entry.mark else (),
        )
        for entry in catalog.MODELS
    ]
)
def model_entry(request):
    return request.param


@pytest.fixture
def model(model_entry):
    """A model of the entry; its weights are put back after the test."""
    model = shared_model(model_entry.name)
    weights = model.get_weights()
    yield model
    model.set_weights(weights)


@pytest.fixture
def graph(model, model_entry):
    """`graph(inputs)`: log-probabilities from one traced function."""
    return shared_graph(model_entry.name)
