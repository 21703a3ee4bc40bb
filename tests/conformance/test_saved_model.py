"""A SavedModel has open shapes, no XLA op, and gives the same numbers."""

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2


def ops_of(folder):
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((folder / "saved_model.pb").read_bytes())
    graph = proto.meta_graphs[0].graph_def
    functions = graph.library.function
    for function in functions:
        assert not function.attr["_XlaMustCompile"].b, function.signature.name
    return {node.op for node in graph.node} | {
        node.op for function in functions for node in function.node_def
    }


def export(model, folder):
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serve",
        lambda inputs: model(inputs, training=False),
        input_signature=[
            keras.tree.map_structure(
                lambda symbol: tf.TensorSpec(
                    symbol.shape, symbol.dtype, name=symbol.name
                ),
                model.input,
            )
        ],
    )
    archive.write_out(folder, verbose=False)
    wrong = [op for op in ops_of(folder) if op.startswith("Xla")]
    assert not wrong
    return tf.saved_model.load(folder)


def test_a_layer_is_exported(layer_entry, tmp_path):
    model = layer_entry.functional()
    again = export(model, tmp_path / "exported")
    for rows in (3, 2):
        inputs = keras.tree.map_structure(
            lambda value, rows=rows: tf.constant(value[:rows]),
            layer_entry.example(),
        )
        np.testing.assert_allclose(
            again.serve(inputs), model(inputs), atol=1e-5
        )


def test_a_model_is_exported(model, model_entry, tmp_path):
    again = export(model, tmp_path / "exported")
    for sizes in ((4, 7, 5), (2, 3, 11)):
        inputs, _ = model_entry.example(*sizes)
        inputs = {name: tf.constant(ids) for name, ids in inputs.items()}
        np.testing.assert_allclose(
            again.serve(inputs), model(inputs), atol=1e-5
        )
