"""Requests that TensorFlow Serving runs when it loads an export.

TensorFlow prepares a signature when it is first run, which takes many times as
long as a translation. The server runs these requests before it takes others:
https://www.tensorflow.org/tfx/serving/saved_model_warmup
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from keras_deepnmt.serving.serving_graph import ServingGraph

WARM_UP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
# The largest batch; more would only delay the server.
_MOST_SENTENCES = 32
# What a request has of the messages in `tensorflow_serving.apis`: the package
# with them, tensorflow-serving-api, needs gRPC. Tensors are the bytes of a
# `TensorProto`, which a message stores in the same way.
_MESSAGES = """
name: "requests.proto" package: "tensorflow.serving" syntax: "proto3"
message_type {
  name: "ModelSpec"
  field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  field {
    name: "signature_name" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING
  }
}
message_type {
  name: "PredictRequest"
  field {
    name: "model_spec" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE
    type_name: ".tensorflow.serving.ModelSpec"
  }
  field {
    name: "inputs" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE
    type_name: ".tensorflow.serving.PredictRequest.InputsEntry"
  }
  nested_type {
    name: "InputsEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES }
  }
}
message_type {
  name: "PredictLog"
  field {
    name: "request" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE
    type_name: ".tensorflow.serving.PredictRequest"
  }
}
message_type {
  name: "PredictionLog"
  field {
    name: "predict_log" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE
    type_name: ".tensorflow.serving.PredictLog"
  }
}
"""


def warm_up_requests(
    graph: "ServingGraph", records: Sequence[dict]
) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Makes requests of each signature in the shapes that a server meets.

    They are a short sentence, a long one, and a batch of both and others, of
    the golden sentences `records`. Each request is a signature with its inputs.
    """
    filled = [record for record in records if record["source"].strip()]
    ordered = sorted(filled or records, key=lambda one: len(one["source"]))
    shapes = [ordered[:1], ordered[-1:], ordered[-_MOST_SENTENCES:]]
    return [
        (signature, inputs)
        for shape in shapes
        for signature, inputs in _inputs(graph, shape).items()
    ]


def _inputs(graph, records):
    def texts(name):
        return np.array([record[name].encode() for record in records], object)

    numbers = {
        "num_hypotheses": np.int32(graph.num_beams),
        "length_penalty": np.float32(graph.length_penalty),
    }
    return {
        "serving_default": {"text": texts("source")},
        "translate_nbest": {"text": texts("source"), **numbers},
        "translate_given": {
            "text": texts("source"),
            "prefix": texts("given_prefix"),
            "constraints": texts("given_phrase")[:, None],
            "max_length": np.zeros(len(records), "int32"),
            **numbers,
        },
        "score": {"source": texts("source"), "target": texts("target")},
    }


def write_warm_up(
    version_dir: Path,
    name: str,
    requests: Sequence[tuple[str, dict[str, Any]]],
) -> None:
    """Writes requests of a model into the folder of its SavedModel.

    The file is a TFRecord of `PredictionLog` messages, which have the name of
    the model. Each request is a signature with its inputs.
    """
    import tensorflow as tf

    file = version_dir / WARM_UP_FILE
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for signature, inputs in requests:
            log = _prediction_log()
            request = log.predict_log.request
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for key, value in inputs.items():
                tensor = tf.make_tensor_proto(value)
                request.inputs[key] = tensor.SerializeToString()
            writer.write(log.SerializeToString(deterministic=True))


def read_warm_up(version_dir: Path) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Reads the requests of `write_warm_up`: signatures with their inputs."""
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2

    requests = []
    records = tf.data.TFRecordDataset(str(version_dir / WARM_UP_FILE))
    for record in records.as_numpy_iterator():
        log = _prediction_log()
        log.ParseFromString(record)
        request = log.predict_log.request
        inputs = {
            key: tf.make_ndarray(tensor_pb2.TensorProto.FromString(value))
            for key, value in request.inputs.items()
        }
        requests.append((request.model_spec.signature_name, inputs))
    return requests


def _prediction_log():
    return _message_class()()


@cache
def _message_class():
    from google.protobuf import descriptor_pb2, message_factory, text_format
    from google.protobuf.descriptor_pool import DescriptorPool

    # Of its own, since a process may have the complete messages, too.
    pool = DescriptorPool()
    pool.Add(text_format.Parse(_MESSAGES, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.serving.PredictionLog")
    )
