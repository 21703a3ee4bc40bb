"""A saved model loads with its outputs, compiled state and shared weights."""

import io
import zipfile

import catalog
import h5py
import keras
import keras_nlp
import numpy as np
import pytest

import keras_deepnmt


def test_a_layer_saves_and_loads(layer_entry, tmp_path):
    model = layer_entry.functional()
    model.save(tmp_path / "layer.keras")
    again = keras.models.load_model(tmp_path / "layer.keras")
    inputs = layer_entry.example()
    np.testing.assert_array_equal(model(inputs), again(inputs))


@pytest.mark.thorough
def test_a_model_saves_and_loads_as_a_preset(model_entry, tmp_path):
    model = model_entry.make()
    model.save_to_preset(tmp_path / "preset")
    inputs, _ = model_entry.example()
    for base in (keras_deepnmt.models.Seq2Seq, keras_nlp.models.Backbone):
        again = base.from_preset(str(tmp_path / "preset"))
        assert type(again) is type(model)
        np.testing.assert_array_equal(model(inputs), again(inputs))


@pytest.mark.parametrize(
    "vocabulary_sizes, options, num_matrices",
    [
        ((13, 13), {"share_embeddings": True}, 1),
        ((13, 13), {"share_embeddings": False}, 2),
        ((13, 13), {"tie_output_embedding": False}, 3),
    ],
)
def test_a_tied_matrix_is_stored_once(
    vocabulary_sizes, options, num_matrices, tmp_path
):
    entry = catalog.ModelEntry("", "transformer_base", vocabulary_sizes)
    entry.make(**options).save(tmp_path / "model.keras")
    weights = zipfile.ZipFile(tmp_path / "model.keras").read("model.weights.h5")
    found = []

    def visit(name, value):
        if isinstance(value, h5py.Dataset) and 13 in value.shape:
            found.append(name)

    h5py.File(io.BytesIO(weights)).visititems(visit)
    assert len(found) == num_matrices, found
