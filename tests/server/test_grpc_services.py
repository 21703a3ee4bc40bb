"""What clients of TensorFlow Serving's gRPC interface get.

The calls are those of the stubs of `tensorflow-serving-api`.
"""

import io
import json
import threading
import time

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)
from toy_server import SECONDS

from keras_deepnmt.errors import UserError
from keras_deepnmt.server import grpc_services, process
from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.grpc_services import GrpcServer
from keras_deepnmt.server.json_log import json_log
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.serving.clients import RestClient
from keras_deepnmt.serving.grpc_client import GrpcClient

CODES = grpc.StatusCode


class Stubs:
    """A gRPC server of a `ToyServer`, and the stubs to call it."""

    def __init__(self, server, limits, keys=()):
        self.server = GrpcServer(
            server.models,
            limits,
            ApiKeys(list(keys)),
            server.metrics,
            "127.0.0.1:0",
        )
        self.server.start()
        self.address = f"127.0.0.1:{self.server.port}"
        self.channel = grpc.insecure_channel(self.address)
        self.prediction = prediction_service_pb2_grpc.PredictionServiceStub(
            self.channel
        )
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def predict(self, texts, name="one", version=None, **options):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        if version is not None:
            request.model_spec.version.value = version
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts))
        answer = self.prediction.Predict(request, timeout=SECONDS, **options)
        return [t.decode() for t in tf.make_ndarray(answer.outputs["text"])]

    def close(self):
        self.channel.close()
        self.server.stop()


@pytest.fixture
def make_stubs(make_server):
    made = []

    def make(limits=None, keys=(), **options):
        limits = limits or RequestLimits()
        server = make_server(limits=limits, **options)
        made.append(Stubs(server, limits, keys))
        made[-1].toy = server
        return made[-1]

    yield make
    for stubs in made:
        stubs.toy.engine.may_go.set()
        stubs.close()


@pytest.fixture
def stubs(make_stubs):
    return make_stubs()


def refused(code, function, *arguments, **options):
    with pytest.raises(grpc.RpcError) as caught:
        function(*arguments, **options)
    assert caught.value.code() == code, caught.value
    return caught.value.details()


def test_it_predicts(stubs):
    assert stubs.predict(["a", "bä"]) == ["A", "BÄ"]
    assert stubs.predict("a", version=1) == ["A"]
    assert stubs.predict(["a"], name="two") == ["A"]


def test_our_client_calls_every_signature(stubs):
    client = GrpcClient(f"grpc://{stubs.address}/one")
    assert client.translate(["a", "b"]) == ["A", "B"]
    assert client.translate("a", prefixes="p", constraints=["x"]) == "p A x 0"
    nbest = client.translate_nbest(["a"], 2)
    # The last one does not exist: its score is minus infinity.
    assert [found.text for found in nbest[0]] == ["A", "A!"]
    assert client.score("a", "b").token_log_probs == (-0.5, -0.5)
    with pytest.raises(UserError, match="INVALID_ARGUMENT.*1..3"):
        client.translate_nbest(["a"], 9)
    with pytest.raises(UserError, match="NOT_FOUND"):
        GrpcClient(f"grpc://{stubs.address}/none").translate("a")
    with pytest.raises(UserError, match="NOT_FOUND"):
        GrpcClient(f"grpc://{stubs.address}/one/versions/7").translate("a")


def test_our_client_reads_answers_of_more_than_4_mb(stubs):
    predict = stubs.toy.engine.predict

    def longer(call, rows):
        (row,) = predict(call, rows)
        return [row | {"text": "A" * 5_000_000}]

    stubs.toy.engine.predict = longer
    client = GrpcClient(f"grpc://{stubs.address}/one")
    assert len(client.translate("a")) == 5_000_000


@pytest.mark.parametrize(
    "url", ["grpc://a/one", "http://a:1/one", "grpc://a:1", "grpc://a:1/o ne"]
)
def test_a_wrong_address_is_named(url):
    with pytest.raises(UserError, match="grpc://localhost:8500/demo"):
        GrpcClient(url)


def test_a_server_that_is_not_there_is_named():
    client = GrpcClient("grpc://127.0.0.1:1/one", timeout_s=5)
    with pytest.raises(UserError, match="UNAVAILABLE|DEADLINE"):
        client.translate("a")


def test_metadata_and_status_are_given(stubs):
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "one"
    request.metadata_field.append("signature_def")
    answer = stubs.prediction.GetModelMetadata(request)
    found = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(found)
    inputs = found.signature_def["translate_given"].inputs
    assert {"text", "prefix", "constraints"} <= set(inputs)
    assert inputs["max_length"].dtype == tf.int32.as_datatype_enum

    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "one"
    (status,) = stubs.models.GetModelStatus(request).model_version_status
    assert (status.version, status.state) == (1, status.AVAILABLE)
    request.model_spec.name = "none"
    refused(CODES.NOT_FOUND, stubs.models.GetModelStatus, request)


def test_wrong_requests_are_refused_and_the_server_lives_on(stubs):
    refused(CODES.NOT_FOUND, stubs.predict, ["a"], name="none")
    refused(CODES.NOT_FOUND, stubs.predict, ["a"], version=7)
    refused(CODES.INVALID_ARGUMENT, stubs.predict, [7])
    refused(CODES.INVALID_ARGUMENT, stubs.predict, [b"\xff"])
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "one"
    refused(CODES.INVALID_ARGUMENT, stubs.prediction.Predict, request)
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a"]))
    request.model_spec.version_label = "stable"
    message = "Unrecognized servable version label: stable"
    predict = stubs.prediction.Predict
    assert refused(CODES.INVALID_ARGUMENT, predict, request) == message
    request.model_spec.ClearField("version_label")
    # One value that claims to be several, or to have more axes.
    for shape in ((2**40,), (-1,), (2,), (0,), (1, 1, 1)):
        tensor = tf.make_tensor_proto(["a"])
        del tensor.tensor_shape.dim[:]
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        request.inputs["text"].CopyFrom(tensor)
        details = refused(
            CODES.INVALID_ARGUMENT, stubs.prediction.Predict, request
        )
        assert "wrong shape" in details
    for value in ([[1]], [1] * 257):
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(value))
        details = refused(
            CODES.INVALID_ARGUMENT, stubs.prediction.Predict, request
        )
        assert "wrong shape" in details
    request.model_spec.signature_name = "none"
    refused(CODES.INVALID_ARGUMENT, stubs.prediction.Predict, request)
    stubs.predict(["a"])


def test_limits_and_keys_hold_here_too(make_stubs):
    limits = RequestLimits(max_sentences=2, max_tokens=5, max_bytes=500)
    stubs = make_stubs(limits, keys=["k"])
    refused(CODES.UNAUTHENTICATED, stubs.predict, ["a"])
    wrong = [("x-api-key", "guess")]
    refused(CODES.PERMISSION_DENIED, stubs.predict, ["a"], metadata=wrong)
    right = [("authorization", "Bearer k")]
    assert stubs.predict(["a"], metadata=right) == ["A"]
    address = f"grpc://{stubs.address}/one"
    assert GrpcClient(address, api_key="k").translate(["a"]) == ["A"]
    for given in ({"prefixes": ["a b c d e"]}, {"constraints": [["a"] * 17]}):
        with pytest.raises(UserError, match="INVALID_ARGUMENT.*at most"):
            GrpcClient(address, api_key="k").translate(["a"], **given)
    with pytest.raises(UserError, match="UNAUTHENTICATED"):
        GrpcClient(address).translate(["a"])
    for texts in (["a"] * 3, ["a b c d e"]):
        refused(CODES.INVALID_ARGUMENT, stubs.predict, texts, metadata=right)
    # Before they are decoded.
    texts = [b"\xff"] * 3
    assert "at most 2 sentences. Received: 3" in refused(
        CODES.INVALID_ARGUMENT, stubs.predict, texts, metadata=right
    )
    large = ["a" * 600]
    refused(CODES.RESOURCE_EXHAUSTED, stubs.predict, large, metadata=right)


def test_a_full_server_says_when_to_come_back(make_stubs):
    stubs = make_stubs(RequestLimits(max_sentences=4, max_waiting=4))
    engine = stubs.toy.engine
    engine.may_go.clear()
    queue = stubs.toy.models.by_name["one"].current.queue
    queue.submit(["busy"], [1], 1)
    assert engine.has_begun.wait(SECONDS)
    queue.submit(["a"] * 4, [1] * 4, 1)
    with pytest.raises(grpc.RpcError) as caught:
        stubs.predict(["b"])
    assert caught.value.code() == CODES.RESOURCE_EXHAUSTED
    assert int(dict(caught.value.trailing_metadata())["retry-after"]) >= 1


def test_calls_at_a_time_are_limited(make_stubs, monkeypatch):
    monkeypatch.setattr(grpc_services, "_MOST_CALLS", 1)
    stubs = make_stubs()
    stubs.toy.engine.may_go.clear()
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(stubs.predict(["a"]))
    )
    asking.start()
    assert stubs.toy.engine.has_begun.wait(SECONDS)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "one"
    refused(
        CODES.RESOURCE_EXHAUSTED,
        stubs.models.GetModelStatus,
        request,
        timeout=2,
    )
    stubs.toy.engine.may_go.set()
    asking.join(SECONDS)
    assert answers == [["A"]]


def test_the_work_of_a_client_that_has_gone_is_dropped(stubs):
    engine = stubs.toy.engine
    engine.may_go.clear()
    queue = stubs.toy.models.by_name["one"].current.queue
    queue.submit(["busy"], [1], 1)
    assert engine.has_begun.wait(SECONDS)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "one"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["gone"]))
    call = stubs.prediction.Predict.future(request)
    _wait_until(lambda: queue.num_waiting == 1)
    call.cancel()
    _wait_until(lambda: queue.num_waiting == 0)
    engine.may_go.set()
    assert stubs.predict(["next"]) == ["NEXT"]
    assert ["gone"] not in engine.batches


def test_a_fault_is_told_without_a_text(stubs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "one"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["broken"]))

    def broken(call, rows):
        raise ValueError("a secret text")

    stubs.toy.engine.predict = broken
    details = refused(CODES.INTERNAL, stubs.prediction.Predict, request)
    assert "secret" not in details


def test_the_log_and_the_figures_have_the_seconds_of_a_request(stubs):
    log = io.StringIO()
    with json_log(stream=log):
        stubs.predict(["a b", "c"])
        refused(CODES.NOT_FOUND, stubs.predict, ["a"], name="none")
        _wait_until(lambda: log.getvalue().count("\n") == 2)
    first, second = map(json.loads, log.getvalue().splitlines())
    assert first["ms"] >= first["queued_ms"] >= 0
    assert (first["model"], first["sentences"], first["tokens"]) == (
        "one",
        2,
        5,
    )
    assert second["ms"] >= 0 and "queued_ms" not in second
    figures = stubs.toy.metrics.text().decode()
    name = 'deepnmt_request_seconds_count{path="grpc Predict"} 2.0'
    assert name in figures
    assert 'deepnmt_queued_seconds_count{model="one"} 1.0' in figures


def test_stopping_answers_what_has_come(stubs):
    engine = stubs.toy.engine
    engine.may_go.clear()
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(stubs.predict(["a"]))
    )
    asking.start()
    assert engine.has_begun.wait(SECONDS)
    stopping = threading.Thread(target=stubs.server.stop)
    stopping.start()
    time.sleep(0.1)
    engine.may_go.set()
    asking.join(SECONDS)
    stopping.join(SECONDS)
    assert answers == [["A"]]


def test_it_takes_no_requests_while_others_are_answered(
    make_stubs, monkeypatch
):
    """At the end of a server, HTTP and gRPC have the same seconds."""
    stubs = make_stubs()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    # It has been started.
    monkeypatch.setattr(stubs.server, "start", lambda: None)
    servers, answers = [], []
    whole = process._Server

    def make_whole(*arguments):
        servers.append(whole(*arguments))
        return servers[0]

    monkeypatch.setattr(process, "_Server", make_whole)
    stubs.toy.engine.may_go.clear()
    with process.open_socket("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        serving = threading.Thread(
            target=process.run_server,
            args=(stubs.toy.app, opened, stubs.toy.models, SECONDS),
            kwargs={"grpc_server": stubs.server},
        )
        client = RestClient(f"http://127.0.0.1:{port}/v1/models/one")
        asking = threading.Thread(
            target=lambda: answers.append(client.translate(["a"]))
        )
        serving.start()
        asking.start()
        assert stubs.toy.engine.has_begun.wait(SECONDS)
        servers[0].should_exit = True
        _wait_until(lambda: not servers[0].servers[0].is_serving())
        refused(CODES.UNAVAILABLE, stubs.predict, ["late"])
        stubs.toy.engine.may_go.set()
        asking.join(SECONDS)
        serving.join(SECONDS)
    assert answers == [["A"]]


def _wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()
