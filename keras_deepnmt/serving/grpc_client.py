"""A client of TensorFlow Serving's gRPC interface."""

import re
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.clients import ServingClient, as_lists
from keras_deepnmt.serving.rest_call import check_api_key
from keras_deepnmt.serving.served_outputs import checked_outputs
from keras_deepnmt.terminal_text import escape_controls

_ADDRESS = re.compile(
    r"grpc://(?P<host>[^/]+:\d+)/(?:v1/models/)?(?P<name>[\w.-]+)"
    r"(?:/versions/(?P<version>\d+))?/?"
)
# The largest answer that is read, as by `RestClient`; gRPC's own limit is 4 MB.
_MOST_BYTES = 2**28
_NUMBERS = {"num_hypotheses": "int32", "max_length": "int32"}
_NUMBERS |= {"length_penalty": "float32"}


class GrpcClient(ServingClient):
    """Calls TensorFlow Serving through its gRPC interface.

    It reads answers of at most 256 MiB.
    It needs `pip install "keras_deepnmt[serve]"`.

    Args:
        url: The model's address, such as `grpc://localhost:8500/demo`, or with
            `/versions/3` at the end for that version.
        timeout_s: Seconds for each call.
        api_key: The key that the server asks for, if it does. It is sent as it
            is, as all the rest.

    Raises:
        UserError: if `url` is not such an address, or the key has characters
            that no header can hold; by its methods, if the
            server cannot be reached or rejects the request.

    Example:
    >>> GrpcClient("grpc://localhost:8500/demo").url
    'grpc://localhost:8500/demo'
    """

    def __init__(
        self, url: str, timeout_s: float = 60.0, api_key: str | None = None
    ):
        check_api_key(api_key)
        found = _ADDRESS.fullmatch(url)
        if found is None:
            raise UserError(
                "`url` must be the address of a model, such as "
                f"grpc://localhost:8500/demo. Received: {url!r}"
            )
        self.url = url
        self.timeout_s = timeout_s
        self._metadata = ()
        if api_key is not None:
            self._metadata = (("authorization", f"Bearer {api_key}"),)
        self._host, self._name = found["host"], found["name"]
        self._version = found["version"]

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        import grpc
        import numpy as np
        import tensorflow as tf
        from tensorflow_serving.apis import (
            predict_pb2,
            prediction_service_pb2_grpc,
        )

        request = predict_pb2.PredictRequest()
        request.model_spec.name = self._name
        request.model_spec.signature_name = signature
        if self._version is not None:
            request.model_spec.version.value = int(self._version)
        for name, value in inputs.items():
            kind = _NUMBERS.get(name)
            values = np.array(value, kind or object)
            request.inputs[name].CopyFrom(
                tf.make_tensor_proto(
                    values, kind or tf.string, shape=values.shape
                )
            )
        limit = [("grpc.max_receive_message_length", _MOST_BYTES)]
        with grpc.insecure_channel(self._host, limit) as channel:
            service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            try:
                answer = service.Predict(
                    request, timeout=self.timeout_s, metadata=self._metadata
                )
            except grpc.RpcError as error:
                details = escape_controls(" ".join(error.details().split()))
                raise UserError(
                    f"{self.url}: the server rejected the request "
                    f"({error.code().name}): {details[:300]}"
                ) from error
        outputs = {
            name: as_lists(tf.make_ndarray(tensor))
            for name, tensor in answer.outputs.items()
        }
        number = len(inputs.get("text", inputs.get("source", ())))
        try:
            return checked_outputs(signature, {"outputs": outputs}, number)
        except ValueError as error:
            raise UserError(
                f"{self.url}: the answer is not that of an export ({error})."
            ) from error
