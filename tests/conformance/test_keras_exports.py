"""What `model.export` of Keras writes runs in other engines, at any sizes."""

import warnings

import keras
import numpy as np
import pytest
from shared_models import entry_named, shared_model

from keras_deepnmt.layers import MultiHeadAttention
from keras_deepnmt.models.litert_export import check_operations

SIZES = ((3, 7, 5), (2, 11, 2), (1, 2, 9))  # sentences, source and target
NEEDS_ONNX = 'needs pip install "keras_deepnmt[onnx]"'


def export_onnx(model, folder):
    """Exports a model with `model.export`; the function that then runs it."""
    onnxruntime = pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    pytest.importorskip("tf2onnx", reason=NEEDS_ONNX)
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        # In Keras' own support of NumPy 2.
        warnings.filterwarnings("ignore", "In the future `np.object`")
        model.export(
            path, format="onnx", verbose=False, input_signature=[model.input]
        )
    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    names = [node.name for node in session.get_inputs()]

    def run(inputs):
        flat = flatten(inputs)
        assert sorted(flat) == sorted(names)
        return session.run(None, flat)[0]

    return run


def export_litert(model, folder):
    """Exports a model with `model.export`; the function that then runs it."""
    path = folder / "model.tflite"
    model.export(path, format="litert", verbose=False)
    check_operations(path)
    interpreter = litert_interpreter(path)

    def run(inputs):
        flat = flatten(inputs)
        values = {}
        for details in interpreter.get_input_details():
            name = details["name"].removeprefix("serving_default_")
            values[details["index"]] = flat.pop(name.removesuffix(":0"))
        assert not flat
        for index, value in values.items():
            interpreter.resize_tensor_input(index, value.shape)
        interpreter.allocate_tensors()
        for index, value in values.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        (output,) = interpreter.get_output_details()
        return interpreter.get_tensor(output["index"])

    return run


def litert_interpreter(path):
    """LiteRT's interpreter, or the older one in TensorFlow."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ModuleNotFoundError:
        from tensorflow.lite.python.interpreter import Interpreter
    with warnings.catch_warnings():
        # TensorFlow's points at LiteRT.
        warnings.filterwarnings("ignore", r"\s*Warning: tf.lite.Interpreter")
        return Interpreter(str(path), num_threads=1)


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


def assert_equal_at_all_sizes(run, model, entry):
    for sizes in SIZES:
        assert_equal_scores(run, model, entry.example(*sizes)[0])


def has_lstm(model):
    return any("lstm" in weight.path for weight in model.weights)


@pytest.mark.thorough
def test_a_model_runs_in_onnx_runtime(model, model_entry, tmp_path):
    run = export_onnx(model, tmp_path)
    assert_equal_at_all_sizes(run, model, model_entry)


def test_a_layer_with_one_head_runs_in_onnx_runtime(tmp_path):
    query = keras.Input((None, 6), name="query")
    model = keras.Model({"query": query}, MultiHeadAttention(1)(query))
    random = np.random.default_rng(1)
    values = random.normal(size=(3, 11, 6)).astype("float32")
    run = export_onnx(model, tmp_path)
    for batch in (values, values[:2, :5]):
        assert_equal_scores(run, model, {"query": batch})


@pytest.mark.slow
def test_a_layer_runs_in_onnx_runtime(layer_entry, tmp_path):
    model, inputs = layer_entry.functional(), layer_entry.example()
    run = export_onnx(model, tmp_path)
    for rows in (3, 2):
        batch = keras.tree.map_structure(lambda x, n=rows: x[:n], inputs)
        assert_equal_scores(run, model, batch)


@pytest.mark.thorough
def test_a_transformer_runs_in_litert(tmp_path):
    model = shared_model("transformer_tiny")
    run = export_litert(model, tmp_path)
    assert_equal_at_all_sizes(run, model, entry_named("transformer_tiny"))


@pytest.mark.thorough
def test_a_model_runs_in_litert_or_is_refused(model, model_entry, tmp_path):
    if has_lstm(model):
        with pytest.raises(ValueError, match="An LSTM needs such operations"):
            export_litert(model, tmp_path)
        assert not list(tmp_path.iterdir())
        return
    run = export_litert(model, tmp_path)
    assert_equal_at_all_sizes(run, model, model_entry)


@pytest.mark.thorough
def test_a_layer_that_slices_a_mask_is_refused_with_a_remedy(tmp_path):
    class OwnLayer(keras.layers.Layer):
        def call(self, inputs):
            mask = keras.ops.any(inputs > 0, axis=-1)[:, None, :]
            return keras.ops.matmul(keras.ops.cast(mask, "float32"), inputs)

    query = keras.Input((None, 6), name="query")
    model = keras.Model({"query": query}, OwnLayer()(query))
    with pytest.raises(ValueError, match=r"`keras.ops.expand_dims\(mask, 1\)`"):
        export_litert(model, tmp_path)


@pytest.mark.slow
def test_an_lstm_runs_in_litert_at_fixed_sizes(tmp_path):
    entry = entry_named("every slot")
    model = entry.make()
    assert has_lstm(model)
    inputs, _ = entry.example()
    signature = {
        name: keras.InputSpec(shape=ids.shape, dtype="int32", name=name)
        for name, ids in inputs.items()
    }
    path = tmp_path / "model.tflite"
    model.export(
        path, format="litert", verbose=False, input_signature=[signature]
    )
    check_operations(path)


@pytest.mark.thorough
def test_a_layer_runs_in_litert(layer_entry, tmp_path):
    model, inputs = layer_entry.functional(), layer_entry.example()
    if has_lstm(model):
        pytest.skip("LiteRT has no LSTM with open sizes.")
    run = export_litert(model, tmp_path)
    for rows in (3, 2):
        batch = keras.tree.map_structure(lambda x, n=rows: x[:n], inputs)
        assert_equal_scores(run, model, batch)
