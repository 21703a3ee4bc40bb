"""What `model.export` of Keras writes runs in other engines, at any sizes."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import MultiHeadAttention

SIZES = ((3, 7, 5), (2, 11, 2), (1, 2, 9))  # sentences, source and target


def export_onnx(model, inputs, folder):
    """Exports a model with `model.export`; the function that then runs it."""
    onnxruntime = pytest.importorskip(
        "onnxruntime", reason='needs pip install "keras_deepnmt[onnx]"'
    )
    pytest.importorskip(
        "tf2onnx", reason='needs pip install "keras_deepnmt[onnx]"'
    )
    path = folder / "model.onnx"
    model(inputs)  # Keras asks for it
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    names = [node.name for node in session.get_inputs()]

    def run(inputs):
        flat = flatten(inputs)
        assert sorted(flat) == sorted(names)
        return session.run(None, flat)[0]

    return run


def flatten(inputs):
    """The tensors of a model's inputs by name."""
    flat = {}
    for name, value in inputs.items():
        if isinstance(value, list):
            flat |= {f"{name}_{n}": part for n, part in enumerate(value)}
        else:
            flat[name] = value
    return flat


def assert_equal_scores(run, model, inputs):
    expected = np.asarray(model(inputs, training=False))
    tolerance = 1e-5 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(run(inputs), expected, rtol=0, atol=tolerance)


# In Keras' own support of NumPy 2.
in_keras = pytest.mark.filterwarnings(
    "ignore:In the future `np.object`:FutureWarning"
)


@in_keras
def test_a_model_runs_in_onnx_runtime(model, model_entry, tmp_path):
    run = export_onnx(model, model_entry.example()[0], tmp_path)
    for sizes in SIZES:
        assert_equal_scores(run, model, model_entry.example(*sizes)[0])


@in_keras
def test_a_layer_with_one_head_runs_in_onnx_runtime(tmp_path):
    query = keras.Input((None, 6), name="query")
    model = keras.Model({"query": query}, MultiHeadAttention(1)(query))
    random = np.random.default_rng(1)
    values = random.normal(size=(3, 11, 6)).astype("float32")
    run = export_onnx(model, {"query": values}, tmp_path)
    for batch in (values, values[:2, :5]):
        assert_equal_scores(run, model, {"query": batch})


@pytest.mark.thorough
@in_keras
def test_a_layer_runs_in_onnx_runtime(layer_entry, tmp_path):
    model, inputs = layer_entry.functional(), layer_entry.example()
    run = export_onnx(model, inputs, tmp_path)
    for rows in (3, 2):
        batch = keras.tree.map_structure(lambda x, n=rows: x[:n], inputs)
        assert_equal_scores(run, model, batch)
