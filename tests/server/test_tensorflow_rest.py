"""What clients of TensorFlow Serving's REST interface get.

The forms and statuses are those that its documentation states.
"""

import asyncio
import base64
import threading

import pytest
from threaded_server import threaded_server
from toy_server import SECONDS, Capitals

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import Version


def predict(server, content, path="/v1/models/one:predict"):
    return server.client.post(path, json=content)


def error(answer, status):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    return answer.json()["error"]


def test_columns_give_columns(server):
    answer = predict(server, {"inputs": {"text": ["a", "b c"]}})
    assert answer.json() == {
        "outputs": {
            "text": ["A", "B C"],
            "score": [0.0, 0.0],
            "truncated": [False, False],
            "source_truncated": [False, False],
        }
    }


def test_rows_give_rows(server):
    row = {"score": 0.0, "truncated": False, "source_truncated": False}
    for instances in (["a", "b"], [{"text": "a"}, {"text": "b"}]):
        answer = predict(server, {"instances": instances})
        assert answer.json() == {
            "predictions": [{**row, "text": "A"}, {**row, "text": "B"}]
        }


def test_the_input_may_stand_without_its_name(server):
    for inputs in (["a"], "a"):
        answer = predict(server, {"inputs": inputs})
        assert answer.json()["outputs"]["text"] == ["A"]


def test_bytes_are_in_base_64(server):
    value = {"b64": base64.b64encode("ä".encode()).decode()}
    answer = predict(server, {"inputs": {"text": [value]}})
    assert answer.json()["outputs"]["text"] == ["Ä"]
    for wrong in ("=", "/w==", 7):
        content = {"instances": [{"b64": wrong}]}
        assert "base 64" in error(predict(server, content), 400)


def test_a_signature_is_chosen_by_its_name(server):
    answer = predict(
        server,
        {
            "signature_name": "translate_nbest",
            "inputs": {"text": ["a", "b"], "num_hypotheses": 2},
        },
    )
    assert answer.json()["outputs"]["text"] == [["A", "A!"], ["B", "B!"]]
    # JSON has no name for it, and TensorFlow Serving writes this.
    assert "-Infinity" in answer.text
    answer = predict(
        server,
        {
            "signature_name": "translate_given",
            "inputs": {
                "text": ["a", "b"],
                "prefix": ["p", ""],
                "constraints": [["x", "y"], ["z", ""]],
                "max_length": [7, 0],
                "num_hypotheses": 1,
            },
        },
    )
    assert answer.json()["outputs"]["text"] == [["p A x y 7"], [" B z  0"]]
    answer = predict(
        server,
        {
            "signature_name": "score",
            "inputs": {"source": ["a", "b"], "target": ["a", "b c"]},
        },
    )
    # As long as the longest of this request, not of its batch.
    assert answer.json()["outputs"]["token_log_prob"] == [[-0.5] * 3] * 2


def test_rows_of_scores_are_as_wide_as_in_a_batch_of_their_own(server):
    """A batch also has longer targets of other clients.

    This engine pads all to 9 tokens.
    """
    for targets, width in ((["a"], 2), (["a", "b c"], 3)):
        content = {
            "signature_name": "score",
            "instances": [{"source": "a", "target": t} for t in targets],
        }
        rows = predict(server, content).json()["predictions"]
        found = [row["token_log_prob"] for row in rows]
        assert found == [[-0.5] * width] * len(targets)
        assert [row["log_prob"] for row in rows] == [-1.0] * len(targets)


@pytest.mark.parametrize(
    "content, words",
    [
        ({}, "Missing 'inputs' or 'instances'"),
        ({"inputs": ["a"], "instances": ["a"]}, "both are given"),
        ({"inputs": ["a"], "signature_name": "x"}, "not found in signature"),
        ({"instances": []}, "list with values"),
        ({"instances": "a"}, "list with values"),
        ({"instances": ["a", {"b": "c"}]}, "same names"),
        ({"inputs": {"txt": ["a"]}}, "input txt is not one of"),
        ({"inputs": {"text": [7]}}, "text must be text. Received: 7"),
        ({"inputs": {"text": [["a"]]}}, "text must be text"),
        ({"inputs": {}}, "input text is missing"),
        ({"signature_name": "score", "inputs": ["a"]}, "must be an object"),
        ({"signature_name": 7, "inputs": ["a"]}, "not found in signature"),
    ],
)
def test_a_wrong_request_is_400_and_named(server, content, words):
    assert words in error(predict(server, content), 400)


@pytest.mark.parametrize(
    "inputs, words",
    [
        ({"num_hypotheses": 4}, "must lie in 1..3. Received: 4"),
        ({"num_hypotheses": 0}, "must lie in 1..3"),
        ({"num_hypotheses": 1.5}, "must be an integer"),
        ({"num_hypotheses": True}, "must be an integer"),
        ({"num_hypotheses": [1]}, "must be an integer"),
        ({"length_penalty": -1}, "at least 0"),
        ({"length_penalty": "x"}, "must be a number"),
        ({"prefix": ["a", "b"]}, "one value for each of 1 sentences"),
        ({"constraints": ["a"]}, "list of lists"),
        ({"constraints": [["a"], ["b", "c"]]}, "equal length"),
        ({"constraints": [["a"] * 17]}, "at most 16 phrases"),
        ({"constraints": [["a", "ä" * 101]]}, "200 bytes. Received: 202"),
        ({"max_length": [2**40]}, "too large"),
    ],
)
def test_a_wrong_input_is_400_and_named(server, inputs, words):
    content = {
        "signature_name": "translate_given",
        "inputs": {"text": ["a"], **inputs},
    }
    assert words in error(predict(server, content), 400)


def test_an_infinite_number_is_400(server):
    # Python writes it as Infinity, other clients as a number this large.
    found = server.client.post(
        "/v1/models/one:predict",
        content='{"signature_name": "translate_given", "inputs": '
        '{"text": ["a"], "num_hypotheses": 1e999}}',
        headers={"Content-Type": "application/json"},
    )
    assert "num_hypotheses is too large" in error(found, 400)


def test_what_the_model_refuses_is_400(server):
    content = {
        "signature_name": "translate_given",
        "inputs": {"text": ["refused"], "prefix": ["x"]},
    }
    assert "too long" in error(predict(server, content), 400)


def test_unknown_models_and_versions_are_404(server):
    content = {"inputs": ["a"]}
    found = predict(server, content, "/v1/models/none:predict")
    assert error(found, 404) == "Servable not found for request: Latest(none)"
    found = predict(server, content, "/v1/models/one/versions/7:predict")
    assert "Specific(one, 7)" in error(found, 404)
    found = predict(server, content, "/v1/models/one/versions/1:predict")
    assert found.status_code == 200
    for path in ("none", "none/metadata", "one/versions/7", "one/versions/x"):
        error(server.client.get(f"/v1/models/{path}"), 404)


def test_the_status_has_the_versions(server):
    for path in ("one", "one/versions/1"):
        answer = server.client.get(f"/v1/models/{path}")
        assert answer.json() == {
            "model_version_status": [
                {
                    "version": "1",
                    "state": "AVAILABLE",
                    "status": {"error_code": "OK", "error_message": ""},
                }
            ]
        }


def test_signatures_are_described_beside_other_requests(server):
    loops = []

    def signature_definitions():
        # There is one in the thread that answers all requests.
        loops.append(asyncio._get_running_loop())
        return {}

    server.engine.signature_definitions = signature_definitions
    answer = server.client.get("/v1/models/one/metadata")
    assert answer.json()["metadata"] == {"signature_def": {"signature_def": {}}}
    assert loops == [None]


def test_limits_and_keys_hold_here_too(make_server):
    limits = RequestLimits(max_sentences=2, max_tokens=5, max_bytes=500)
    server = make_server(limits=limits, keys=["k"])
    path = "/v1/models/one:predict"

    def status(content):
        headers = {"Authorization": "Bearer k"}
        return server.client.post(
            path, json=content, headers=headers
        ).status_code

    assert error(predict(server, {"inputs": ["a"]}), 401)
    assert status({"inputs": ["a"]}) == 200
    assert status({"inputs": ["a"] * 3}) == 413
    assert status({"inputs": ["a b c d e"]}) == 400
    assert status({"inputs": ["a" * 500]}) == 413
    pair = {"source": ["a"], "target": ["a b c d e"]}
    assert status({"signature_name": "score", "inputs": pair}) == 400
    begun = {"text": ["a"], "prefix": ["a b c d e"]}
    assert status({"signature_name": "translate_given", "inputs": begun}) == 400
    assert server.client.get("/v1/models/one").status_code == 401
    assert server.client.get("/v1/models/one/metadata").status_code == 401


def test_our_client_has_a_key(make_server, monkeypatch):
    from keras_deepnmt.serving.clients import RestClient

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = make_server(keys=["k"])
    with threaded_server(server.app) as address:
        url = f"{address}/v1/models/one"
        assert RestClient(url, api_key="k").translate(["a"]) == ["A"]
        for key in (None, "other"):
            with pytest.raises(UserError, match="key"):
                RestClient(url, api_key=key).translate(["a"])
    for key in ("", "a\r\nX: b", "ä"):
        with pytest.raises(UserError, match="printable ASCII"):
            RestClient(url, api_key=key)


def test_our_client_calls_every_signature(server, monkeypatch):
    from keras_deepnmt.serving.clients import RestClient

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with threaded_server(server.app) as address:
        client = RestClient(f"{address}/v1/models/one")
        assert client.translate(["a", "b"]) == ["A", "B"]
        assert client.translate("a", prefixes="p") == "p A 0"
        nbest = client.translate_nbest(["a"], 3)
        # The last one does not exist: its score is minus infinity.
        assert [found.text for found in nbest[0]] == ["A", "A!", "A!!"]
        assert client.score("a", "b").token_log_probs == (-0.5, -0.5)
        with pytest.raises(UserError, match="1..3. Received: 9"):
            client.translate_nbest(["a"], 9)
        with pytest.raises(UserError, match="404"):
            RestClient(f"{address}/v1/models/none").translate("a")


def test_requests_of_several_clients_share_batches(make_server):
    server = make_server()
    server.engine.may_go.clear()
    queue = server.models.by_name["one"].current.queue
    queue.submit(["busy"], [1], 1)
    assert server.engine.has_begun.wait(SECONDS)
    answers = {}

    def ask(text):
        answers[text] = predict(server, {"inputs": [text]}).json()

    threads = [threading.Thread(target=ask, args=(t,)) for t in "abc"]
    for thread in threads:
        thread.start()
    while queue.num_waiting < 3:
        pass
    server.engine.may_go.set()
    for thread in threads:
        thread.join(SECONDS)
    assert {t: a["outputs"]["text"] for t, a in answers.items()} == {
        "a": ["A"],
        "b": ["B"],
        "c": ["C"],
    }
    assert sorted(map(len, server.engine.batches)) == [1, 3]


def test_a_newer_version_takes_over_and_nothing_is_lost(server):
    model = server.models.by_name["one"]
    before = model.current

    class Newer(Capitals):
        def translate(self, number, texts):
            found = super().translate(number, [f"new {t}" for t in texts])
            return found

    model._make_version = lambda number: Version(
        number, Newer(), RequestLimits(), 0.001
    )
    waiting = before.queue.submit(["old"], [1], 1)
    model.replace(2)
    assert waiting.future.result(SECONDS)[0][0].text == "OLD"
    assert server.translate("a").json()["translatedText"] == "NEW A"
    assert model.states() == {2: "AVAILABLE"}
    # A request that had just chosen the one before.
    model.current = before
    assert server.translate("b").json()["translatedText"] == "NEW B"


def test_a_version_that_fails_leaves_the_one_before(server):
    model = server.models.by_name["one"]

    class Broken(Capitals):
        def warm_up(self, is_stopped):
            raise UserError("damaged")

    model._make_version = lambda number: Version(
        number, Broken(), RequestLimits()
    )
    with pytest.raises(UserError, match="damaged"):
        model.replace(2)
    assert model.states() == {1: "AVAILABLE"}
    assert server.translate("a").status_code == 200
