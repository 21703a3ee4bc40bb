"""A quantized model is saved only where it can be loaded again, unchanged.

* float8 and freshly quantized int8 weights survive a `.keras` file
* int4 weights, int8 weights that were loaded, and presets are refused in one
  sentence, and nothing is written
* a weights file keeps all of them
"""

import warnings

import catalog
import keras
import numpy as np
import pytest

from keras_deepnmt.models import Transformer

INPUTS, _ = catalog.MODELS[0].example()


def quantized(mode):
    keras.utils.set_random_seed(1)
    model = Transformer(13, 13, 8, 16, 2, 1, 1)
    return quantize(model, mode)


def quantize(model, mode):
    with warnings.catch_warnings():
        # Keras warns of each layer that has nothing to convert.
        warnings.simplefilter("ignore")
        model.quantize(mode)
    return model


def assert_equal_scores(model, other):
    np.testing.assert_array_equal(model(INPUTS), other(INPUTS))


@pytest.mark.thorough
def test_a_keras_file_keeps_the_weights_or_is_refused(tmp_path):
    path = tmp_path / "model.keras"
    for mode in ("int8", "float8"):
        model = quantized(mode)
        model.save(path)
        assert_equal_scores(keras.saving.load_model(path), model)
    with pytest.raises(ValueError, match="not int4, .* a model with int4"):
        quantized("int4").save(tmp_path / "other.keras")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_loaded_int8_model_is_not_saved_once_more(tmp_path):
    path = tmp_path / "model.keras"
    quantized("int8").save(path)
    model = keras.saving.load_model(path)
    with pytest.raises(ValueError, match="a loaded model with int8 weights"):
        model.save(path)
    assert_equal_scores(keras.saving.load_model(path), model)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
def test_a_preset_is_refused_and_a_weights_file_kept(mode, tmp_path):
    model = quantized(mode)
    with pytest.raises(ValueError, match=f"{mode} weights. Save the weights"):
        model.save_to_preset(str(tmp_path / "preset"))
    assert not list(tmp_path.iterdir())
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other = quantize(Transformer(13, 13, 8, 16, 2, 1, 1), mode)
    other.load_weights(path)
    assert_equal_scores(other, model)
