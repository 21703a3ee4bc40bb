"""A SavedModel has open shapes, no XLA op, and gives the same numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance_checks import layers_in_turn
from tensorflow.core.protobuf import saved_model_pb2


def ops_of(graph):
    functions = graph.library.function
    for function in functions:
        assert not function.attr["_XlaMustCompile"].b, function.signature.name
    return {node.op for node in graph.node} | {
        node.op for function in functions for node in function.node_def
    }


def open_shapes(model):
    """The specifications of a model's inputs, whose sizes it does not know."""
    return keras.tree.map_structure(
        lambda symbol: tf.TensorSpec(
            symbol.shape, symbol.dtype, name=symbol.name
        ),
        model.input,
    )


def assert_no_xla(graph):
    wrong = [op for op in ops_of(graph) if op.startswith("Xla")]
    assert not wrong


def export(model, folder):
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serve",
        lambda inputs: model(inputs, training=False),
        input_signature=[open_shapes(model)],
    )
    archive.write_out(folder, verbose=False)
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((folder / "saved_model.pb").read_bytes())
    assert_no_xla(proto.meta_graphs[0].graph_def)
    again = tf.saved_model.load(folder)
    # Which keeps the variables.
    return lambda inputs: again.serve(inputs)


def graph_to_export(model):
    """The graph that `export` writes of a layer, compared without a file."""
    function = tf.function(
        lambda inputs: model(inputs, training=False),
        input_signature=[open_shapes(model)],
    )
    assert_no_xla(function.get_concrete_function().graph.as_graph_def())
    return function


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("layer_entry", layers_in_turn(1))
# Slow, since models of these layers are written below.
@pytest.mark.parametrize(
    "is_written", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_layer_is_exported(layer_entry, tmp_path, is_written):
    model = layer_entry.functional()
    if is_written:
        serve = export(model, tmp_path / "exported")
    else:
        serve = graph_to_export(model)
    for rows in (3, 2):
        inputs = keras.tree.map_structure(
            lambda value, rows=rows: tf.constant(value[:rows]),
            layer_entry.example(),
        )
        np.testing.assert_allclose(serve(inputs), model(inputs), atol=1e-5)


@pytest.mark.thorough
def test_a_model_is_exported(model, model_entry, tmp_path):
    serve = export(model, tmp_path / "exported")
    for sizes in ((4, 7, 5), (2, 3, 11)):
        inputs, _ = model_entry.example(*sizes)
        inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
        np.testing.assert_allclose(serve(inputs), model(inputs), atol=1e-5)
