"""What a layer returns if it is asked to, it returns in functional models."""

import dataclasses
import inspect

import catalog
import keras
import numpy as np
import pytest

ASKED = [
    dataclasses.replace(entry, arguments={**entry.arguments, name: True})
    for entry in catalog.LAYERS
    for name in inspect.signature(entry.make().call).parameters
    if name in ("return_attention_scores", "return_roles")
]


@pytest.mark.parametrize("entry", ASKED, ids=catalog.identify)
def test_a_functional_model_returns_it_too(entry):
    inputs = entry.example()
    model = entry.functional()
    found = model(inputs)
    assert len(found) == 2
    keras.tree.assert_same_structure(model.output, found)
    for symbol, tensor in zip(
        model.outputs, keras.tree.flatten(found), strict=True
    ):
        assert symbol.dtype == keras.backend.standardize_dtype(tensor.dtype)
        for size, real in zip(symbol.shape, tensor.shape, strict=True):
            assert size in (None, real)
    (layer,) = (
        layer for layer in model.layers if not hasattr(layer, "batch_shape")
    )
    eager = layer(**inputs, **entry.arguments)
    for ours, theirs in zip(
        *map(keras.tree.flatten, (found, eager)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
