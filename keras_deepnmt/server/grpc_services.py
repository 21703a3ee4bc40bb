"""The gRPC interface of TensorFlow Serving, for the signatures of exports."""

import math
import threading
import time
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import CancelledError
from typing import Any

import grpc
import tensorflow as tf
from google.protobuf.any_pb2 import Any as AnyMessage
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.batch_queue import QueueClosedError, QueueFullError
from keras_deepnmt.server.json_log import described, log_event
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import ServedModels
from keras_deepnmt.server.signatures import (
    OUTPUTS,
    as_outputs,
    read_inputs,
    sentences_of,
    signature_definition,
)

_DEFAULT_SIGNATURE = "serving_default"
# Requests that wait or are answered at a time; others are refused.
_MOST_CALLS = 256
_TYPES = {
    "DT_STRING": tf.string,
    "DT_FLOAT": tf.float32,
    "DT_INT32": tf.int32,
    "DT_BOOL": tf.bool,
}


class GrpcServer:
    """Answers gRPC until it is stopped.

    The `address` is a host and a port, such as `127.0.0.1:8500`; the attribute
    `port` is its port. A client must give one of the `keys`, in the metadata
    `authorization` (`Bearer KEY`) or `x-api-key`.
    """

    def __init__(
        self,
        models: ServedModels,
        limits: RequestLimits,
        keys: ApiKeys,
        metrics: Metrics,
        address: str,
    ):
        self._timeout_s = limits.timeout_s
        self._server = grpc.server(
            futures.ThreadPoolExecutor(_MOST_CALLS, "grpc"),
            options=[
                ("grpc.max_receive_message_length", limits.max_bytes),
                # Another server at the port is an error.
                ("grpc.so_reuseport", 0),
            ],
            # Their time begins in a thread: none may wait for one.
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        answers = _Answers(models, limits, keys, metrics)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            _PredictionService(answers), self._server
        )
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(
            _ModelService(answers), self._server
        )
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise UserError(
                f"{address}: no gRPC server can be started there. Choose "
                "another `--grpc-port`."
            ) from error

    def start(self) -> None:
        """Begins to answer."""
        self._server.start()

    def begin_to_stop(self) -> threading.Event:
        """Takes no more requests; the event is set when all are answered.

        Those that take longer than the limits allow are ended. A second call
        gives them no more time.
        """
        return self._server.stop(self._timeout_s)

    def stop(self) -> None:
        """Takes no more requests, and ends when those that it has are done."""
        self.begin_to_stop().wait()


class _Refused(Exception):
    """Ends a call with a status of gRPC."""

    def __init__(self, status, message, retry_after_s=None):
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, answers):
        self._answers = answers

    def Predict(self, request, context):
        return self._answers.of("Predict", request, context)

    def GetModelMetadata(self, request, context):
        return self._answers.of("GetModelMetadata", request, context)


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, answers):
        self._answers = answers

    def GetModelStatus(self, request, context):
        return self._answers.of("GetModelStatus", request, context)


class _Answers:
    """Computes the answers of all methods, and logs each call."""

    def __init__(self, models, limits, keys, metrics):
        self._models, self._limits = models, limits
        self._keys, self._metrics = keys, metrics

    def of(self, method, request, context):
        start = time.monotonic()
        status, observed = grpc.StatusCode.OK, {}
        try:
            self._check_key(context)
            return getattr(self, f"_{method}")(request, context, observed)
        except _Refused as error:
            status, message = error.status, str(error)
            if error.retry_after_s is not None:
                context.set_trailing_metadata(
                    (("retry-after", str(error.retry_after_s)),)
                )
        except Exception as error:
            # Its message may hold a text of a user.
            log_event("fault", 40, **described(error))
            status = grpc.StatusCode.INTERNAL
            message = "a fault of the server, which its log names."
        finally:
            path = f"grpc {method}"
            queued_s = observed.pop("queued_s", None)
            times = self._metrics.note_request(
                path,
                status.name,
                time.monotonic() - start,
                observed.get("model"),
                queued_s,
            )
            log_event(
                "request", path=path, status=status.name, **times, **observed
            )
        context.abort(status, message)

    def _check_key(self, context):
        given = dict(context.invocation_metadata())
        kind, _, key = given.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            key = given.get("x-api-key", "")
        if not self._keys.accept(key.strip() or None):
            status = grpc.StatusCode.UNAUTHENTICATED
            if key:
                status = grpc.StatusCode.PERMISSION_DENIED
            raise _Refused(status, "an API key is needed.")

    def _version(self, spec):
        if spec.HasField("version_label"):
            # No version has one here.
            raise _invalid(
                "Unrecognized servable version label: "
                f"{spec.version_label[:60]}"
            )
        model = self._models.by_name.get(spec.name)
        if model is None:
            raise _Refused(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: Latest({spec.name[:60]})",
            )
        version = model.current
        asked = spec.version.value if spec.HasField("version") else None
        if asked not in (None, version.number):
            raise _Refused(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: Specific({model.name}, "
                f"{asked})",
            )
        return model, version

    def _Predict(self, request, context, observed):
        model, version = self._version(request.model_spec)
        signature = request.model_spec.signature_name or _DEFAULT_SIGNATURE
        if signature not in version.engine.signatures:
            raise _invalid(
                f'Serving signature name: "{signature[:60]}" not found in '
                "signature def"
            )
        try:
            inputs = {
                name: _value(name, tensor, self._limits)
                for name, tensor in request.inputs.items()
            }
            call, rows = read_inputs(
                signature, inputs, version.engine.most_hypotheses
            )
        except ValueError as error:
            raise _invalid(str(error)) from error
        lengths = self._lengths(version, signature, rows)
        observed |= {
            "model": model.name,
            "sentences": len(rows),
            "tokens": sum(lengths),
        }
        results = self._results(version, rows, lengths, call, context, observed)
        answer = predict_pb2.PredictResponse()
        answer.model_spec.name = model.name
        answer.model_spec.version.value = version.number
        answer.model_spec.signature_name = signature
        described_outputs = signature_definition(signature).outputs
        outputs = as_outputs(call, results)
        for name in request.output_filter or OUTPUTS[signature]:
            if name not in outputs:
                raise _invalid(f"output {name[:60]} is unknown")
            answer.outputs[name].CopyFrom(
                _tensor(outputs[name], described_outputs[name])
            )
        return answer

    def _lengths(self, version, signature, rows):
        lengths = [
            max(sides)
            for sides in zip(
                *map(version.engine.lengths, sentences_of(signature, rows)),
                strict=True,
            )
        ]
        for number, length in enumerate(lengths, start=1):
            if length > self._limits.max_tokens:
                raise _invalid(
                    f"sentence {number} must have at most "
                    f"{self._limits.max_tokens:,} tokens. Received: {length:,}"
                )
        return lengths

    def _results(self, version, rows, lengths, call, context, observed):
        if not version.is_ready:
            raise _Refused(
                grpc.StatusCode.UNAVAILABLE, "the model is not ready yet.", 2
            )
        seconds = self._limits.timeout_s
        if (left := context.time_remaining()) is not None:
            seconds = min(seconds, left)
        try:
            job = version.submit(rows, lengths, call, seconds)
        except QueueFullError as error:
            raise _Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "too many sentences wait for the model. Try again in "
                f"{error.retry_after_s} s.",
                error.retry_after_s,
            ) from error
        except QueueClosedError as error:
            if version.successor is not None:
                return self._results(
                    version.successor, rows, lengths, call, context, observed
                )
            raise _Refused(
                grpc.StatusCode.UNAVAILABLE, "the server stops.", 2
            ) from error
        # Also called when the client has gone.
        if not context.add_callback(lambda: version.queue.cancel(job)):
            version.queue.cancel(job)
        try:
            results = job.future.result(seconds)
            observed["queued_s"] = job.queued_s
            return results
        except TimeoutError as error:
            version.queue.cancel(job)
            raise _Refused(
                grpc.StatusCode.DEADLINE_EXCEEDED,
                f"no translation within {seconds:g} s.",
            ) from error
        except CancelledError as error:
            raise _Refused(
                grpc.StatusCode.CANCELLED, "the client has gone."
            ) from error
        except UserError as error:
            # Only these have values that the model itself checks.
            if call.signature not in ("translate_given", "score"):
                raise
            raise _invalid(str(error)) from error

    def _GetModelMetadata(self, request, context, observed):
        model, version = self._version(request.model_spec)
        if list(request.metadata_field) != ["signature_def"]:
            raise _invalid("`metadata_field` must be signature_def")
        definitions = get_model_metadata_pb2.SignatureDefMap()
        for name, definition in version.engine.signature_definitions().items():
            definitions.signature_def[name].CopyFrom(definition)
        packed = AnyMessage()
        packed.Pack(definitions)
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        answer.model_spec.name = model.name
        answer.model_spec.version.value = version.number
        answer.metadata["signature_def"].CopyFrom(packed)
        return answer

    def _GetModelStatus(self, request, context, observed):
        model = self._models.by_name.get(request.model_spec.name)
        states = {} if model is None else model.states()
        if request.model_spec.HasField("version"):
            number = request.model_spec.version.value
            states = {n: s for n, s in states.items() if n == number}
        if not states:
            raise _Refused(
                grpc.StatusCode.NOT_FOUND,
                "Could not find any versions of model "
                f"{request.model_spec.name[:60]}",
            )
        answer = get_model_status_pb2.GetModelStatusResponse()
        kinds = get_model_status_pb2.ModelVersionStatus.State
        for number, state in sorted(states.items(), reverse=True):
            answer.model_version_status.add(
                version=number, state=kinds.Value(state)
            )
        return answer


def _invalid(message):
    return _Refused(grpc.StatusCode.INVALID_ARGUMENT, message)


def _value(name: str, tensor: Any, limits: RequestLimits) -> Any:
    """Returns the list or number that a tensor holds.

    Raises a `ValueError` if it is not one, or too large.
    """
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    size = math.prod(sizes)
    is_open = tensor.tensor_shape.unknown_rank or min(sizes, default=0) < 0
    # A shape may state more than there is: TensorFlow repeats the last value.
    if tensor.dtype == tf.string.as_datatype_enum:
        is_wrong = len(sizes) > 2 or size != len(tensor.string_val)
    else:
        # One number, or one for each sentence.
        is_wrong = len(sizes) > 1 or size > limits.max_sentences
    if is_open or is_wrong:
        raise ValueError(f"{name[:60]} has a wrong shape")
    if sizes and sizes[0] > limits.max_sentences:
        raise ValueError(
            f"a request must have at most {limits.max_sentences:,} sentences. "
            f"Received: {sizes[0]:,}"
        )
    try:
        values = tf.make_ndarray(tensor).tolist()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name[:60]} is no tensor") from error
    try:
        return _with_text(values)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name[:60]} must be UTF-8") from error


def _with_text(values):
    if isinstance(values, list):
        return [_with_text(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values


def _tensor(values: Sequence, description: Any) -> Any:
    """Returns the tensor of an output; empty ones have all their axes."""
    from tensorflow.core.framework import types_pb2

    kind = _TYPES[types_pb2.DataType.Name(description.dtype)]
    num_axes = len(description.tensor_shape.dim)
    shape = [len(values)]
    if num_axes == 2:
        shape.append(len(values[0]) if values else 0)
    return tf.make_tensor_proto(values, dtype=kind, shape=shape)
