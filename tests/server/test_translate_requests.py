"""What clients of `/translate` get, in the form of LibreTranslate."""

import asyncio
import io
import json
import logging
import threading

import pytest
from toy_server import SECONDS, Capitals

from keras_deepnmt.server import bodies
from keras_deepnmt.server.bodies import read_body
from keras_deepnmt.server.json_log import json_log
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits


def error(answer, status):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert "\n" not in answer.json()["error"]
    return answer.json()["error"]


def test_a_sentence_gives_a_translation(server):
    answer = server.translate("ein Hund ä")
    assert answer.status_code == 200
    assert answer.json() == {"translatedText": "EIN HUND Ä"}


def test_a_list_gives_a_list_in_its_order(server):
    words = [f"word {n} " * (n % 7) for n in range(50)]
    answer = server.translate(words)
    assert answer.json() == {"translatedText": [w.upper() for w in words]}
    assert server.translate([]).json() == {"translatedText": []}


def test_alternatives_are_further_translations(server):
    answer = server.translate("a", alternatives=2)
    assert answer.json() == {
        "translatedText": "A",
        "alternatives": ["A!", "A!!"],
    }
    answer = server.translate(["a", "b"], alternatives=1)
    assert answer.json()["alternatives"] == [["A!"], ["B!"]]
    assert "at most 2" in error(server.translate("a", alternatives=3), 400)


def test_a_web_form_is_read_as_json_is(server):
    fields = {"q": "ein Hund ä", "source": "de", "target": "en"}
    answer = server.client.post("/translate", data=fields)
    assert answer.json() == {"translatedText": "EIN HUND Ä"}
    fields |= {"q": ["a", "b"], "alternatives": "1"}
    answer = server.client.post("/translate", data=fields)
    assert answer.json()["translatedText"] == ["A", "B"]
    # As `curl -d` sends it.
    answer = server.client.post(
        "/translate",
        content="q=Grüße, %C3%A4&source=de&target=en".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.json() == {"translatedText": "GRÜSSE, Ä"}


def test_a_wrong_field_of_a_web_form_is_named(server, monkeypatch):
    fields = {"q": "a", "source": "de", "target": "en"}
    wrong = fields | {"alternatives": "x"}
    message = error(server.client.post("/translate", data=wrong), 400)
    assert "`alternatives` must be an integer. Received: 'x'" in message
    monkeypatch.setattr(bodies, "_MOST_FIELDS", 2)
    message = error(server.client.post("/translate", data=fields), 400)
    assert "at most 2 fields" in message


def test_the_source_may_be_found_where_there_is_one(server):
    language = {"language": "de", "confidence": 100}
    assert server.translate("a", source="auto").json() == {
        "translatedText": "A",
        "detectedLanguage": language,
    }
    answer = server.translate(["a", "b"], source="auto").json()
    assert answer["detectedLanguage"] == [language] * 2
    message = error(server.translate("a", source="auto", target="de"), 400)
    assert "en to de" in message


def test_languages_are_listed(server):
    assert server.client.get("/languages").json() == [
        {"code": "de", "name": "de", "targets": ["en"]},
        {"code": "en", "name": "en", "targets": ["de"]},
        {"code": "fr", "name": "fr", "targets": ["de"]},
    ]


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"q": 7}, "`q` must be text"),
        ({"q": ["a", None]}, "`q` must be text"),
        ({"q": {"a": "b"}}, "`q` must be text"),
        ({"source": None}, "`source` must be text"),
        ({"alternatives": "many"}, "`alternatives` must be an integer"),
        ({"alternatives": -1}, "`alternatives`"),
        ({"format": "html"}, "`format` must be 'text'"),
        ({"target": "xx"}, "Received: de to xx"),
    ],
)
def test_a_wrong_value_is_named(server, fields, words):
    assert words in error(server.translate(**{"q": "a", **fields}), 400)


@pytest.mark.parametrize(
    "content, status, words",
    [
        (b"{", 400, "not valid JSON"),
        (b"", 400, "not valid JSON"),
        (b"\xff\xfe", 400, "not valid JSON"),
        (b'{"q": "\xc3("}', 400, "not valid JSON"),
        (b'{"q": "\\ud800", "source": "de", "target": "en"}', 400, "halves"),
        (b"[" * 100_000, 400, "levels"),
        (b"[]", 400, "must be an object"),
        (b"{}", 400, "lacks q, source, target"),
    ],
)
def test_a_body_that_is_no_request_is_refused(server, content, status, words):
    answer = server.client.post("/translate", content=content)
    assert words in error(answer, status)
    assert server.translate("a").status_code == 200


def test_a_body_of_another_type_is_refused(server):
    headers = {"Content-Type": "text/plain"}
    answer = server.client.post("/translate", content=b"a", headers=headers)
    assert "application/json" in error(answer, 415)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for content in (b"q=%FF&source=de&target=en", b"\xff"):
        answer = server.client.post("/translate", content=content, headers=form)
        assert "web form" in error(answer, 400)


def test_requests_have_limits(make_server):
    limits = RequestLimits(max_bytes=300, max_sentences=3, max_tokens=5)
    server = make_server(limits=limits)
    assert server.translate(["a b c d"] * 3).status_code == 200
    assert "at most 3" in error(server.translate(["a"] * 4), 413)
    message = error(server.translate(["a", "a b c d e"]), 400)
    assert message.startswith("sentence 2 must have at most 5 tokens")
    assert "300 bytes" in error(server.translate("a" * 300), 413)

    def pieces():
        for _ in range(10):
            yield b" " * 100

    # Without a length that is stated.
    answer = server.client.post("/translate", content=pieces())
    assert "300 bytes" in error(answer, 413)


def test_a_sentence_that_the_model_has_to_cut_is_refused(server):
    message = error(server.translate(["a", "an endless one"]), 400)
    assert message.startswith("sentence 2 must have fewer tokens")


def test_unknown_paths_and_methods_have_errors_of_the_same_form(server):
    error(server.client.get("/nowhere"), 404)
    error(server.client.get("/translate"), 405)


def test_a_server_that_is_not_warm_says_so(make_server):
    engine = Capitals()
    engine.is_warm.clear()
    server = make_server(engine=engine)
    assert server.client.get("/healthz").status_code == 200
    answer = server.client.get("/readyz")
    assert "not ready" in error(answer, 503)
    assert answer.headers["Retry-After"]
    error(server.translate("a"), 503)
    engine.is_warm.set()
    server.wait_until_ready()
    assert server.client.get("/readyz").status_code == 200
    assert server.translate("a").status_code == 200


def test_keys_are_asked_for_where_there_are_some(make_server):
    server = make_server(keys=["a key", "other"])
    answer = server.translate("a")
    assert "key is needed" in error(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "wrong" in error(server.translate("a", api_key="guess"), 403)
    assert server.translate("a", api_key="other").status_code == 200
    for headers in ({"Authorization": "Bearer a key"}, {"X-API-Key": "other"}):
        assert server.translate("a", headers).status_code == 200
    error(server.client.get("/metrics"), 401)
    # What a probe and a menu of languages need.
    for path in ("/healthz", "/readyz", "/languages"):
        assert server.client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/"])
def test_the_head_alone_is_answered(server, path):
    head, whole = server.client.head(path), server.client.get(path)
    assert head.status_code == 200
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


def test_only_pages_of_allowed_sites_may_ask(make_server):
    header = "access-control-allow-origin"
    origin = {"Origin": "https://example.org"}
    server = make_server()
    assert header not in server.translate("a", origin).headers
    server = make_server(origins=["https://example.org"])
    assert server.translate("a", origin).headers[header] == origin["Origin"]
    other = {"Origin": "https://example.com"}
    assert header not in server.translate("a", other).headers


def test_pages_of_other_sites_may_read_what_the_answer_says(make_server):
    server = make_server(origins=["https://example.org"])
    answer = server.translate("a", {"Origin": "https://example.org"})
    assert answer.headers["access-control-expose-headers"].split(", ") == [
        *("Retry-After", "X-Texts", "X-Texts-Cut")
    ]


@pytest.fixture
def busy(make_server):
    """A server whose model computes a sentence until it may go."""
    limits = RequestLimits(max_sentences=4, max_waiting=4, timeout_s=1)
    server = make_server(limits=limits)
    server.engine.may_go.clear()
    queue = server.models.by_name["one"].current.queue
    queue.submit(["busy"], [1], 1)
    assert server.engine.has_begun.wait(SECONDS)
    server.queue = queue
    return server


def test_a_full_server_says_when_to_come_back(busy):
    busy.queue.submit(["a"] * 4, [1] * 4, 1)
    answer = busy.translate("a")
    assert "too many sentences wait" in error(answer, 429)
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_request_that_takes_too_long_fails_and_is_dropped(busy):
    assert "within 1 s" in error(busy.translate("late"), 504)
    assert busy.queue.num_waiting == 0
    busy.engine.may_go.set()
    assert busy.translate("next").status_code == 200
    assert ["late"] not in busy.engine.batches


def ask_and_leave(app, content):
    """Sends a request to the application, and leaves when it waits."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/translate",
        "raw_path": b"/translate",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-type", b"application/json")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 9),
    }
    messages = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message):
        pass

    asyncio.run(app(scope, receive, send))


def test_the_work_of_a_client_that_has_gone_is_dropped(busy):
    content = {"q": "gone", "source": "de", "target": "en"}
    with json_log(stream=io.StringIO()):
        ask_and_leave(busy.app, json.dumps(content).encode())
    assert busy.queue.num_waiting == 0
    busy.engine.may_go.set()
    assert busy.translate("next").status_code == 200
    assert ["gone"] not in busy.engine.batches
    requests = busy.client.get("/metrics").text
    assert 'status="499"' in requests


def test_a_slow_body_is_refused():
    class Slow:
        headers = {}

        async def stream(self):
            yield b"{"
            await asyncio.sleep(SECONDS)

    with pytest.raises(RequestError) as slow:
        asyncio.run(read_body(Slow(), RequestLimits(timeout_s=0.05)))
    assert slow.value.status == 408


def test_a_fault_is_500_and_the_server_lives_on(server):
    log = io.StringIO()
    with json_log(stream=log):
        message = error(server.translate("fault"), 500)
    assert "secret" not in message + log.getvalue()
    (fault, request) = map(json.loads, log.getvalue().splitlines())
    assert fault["error"] == "ValueError"
    assert "toy_server.py" in fault["where"][-1]
    assert request["status"] == 500
    assert server.translate("a").status_code == 200


def test_the_log_has_no_text_of_a_user(server):
    log = io.StringIO()
    with json_log(stream=log):
        server.translate(["geheim eins", "geheim zwei"])
        server.translate("geheim", target="geheim")
        server.client.get("/geheim?q=geheim")
        server.client.post("/translate", content=b"geheim")
    assert "geheim" not in log.getvalue()
    first, *others = map(json.loads, log.getvalue().splitlines())
    assert first["event"] == "request" and first["path"] == "/translate"
    assert (first["model"], first["sentences"], first["tokens"]) == (
        "one",
        2,
        6,
    )
    assert first["ms"] >= 0
    assert [line["status"] for line in others] == [400, 404, 400]


def test_warnings_of_the_package_are_logged_without_texts(server):
    log = io.StringIO()
    with json_log(stream=log):
        logging.getLogger("keras_deepnmt.translator").warning(
            "A source such as %r: %s", "geheim", "no tag"
        )
    line = json.loads(log.getvalue())
    assert line["message"] == "A source such as %r: %s"


def test_figures_count_requests_sentences_and_batches(server):
    server.translate(["a", "b"])
    server.translate("a", target="xx")
    text = server.client.get("/metrics").text
    assert 'deepnmt_sentences_total{model="one"} 2.0' in text
    assert 'deepnmt_requests_total{path="/translate",status="400"} 1.0' in text
    assert 'deepnmt_model_ready{model="one"} 1.0' in text
    assert 'deepnmt_source_tokens_total{model="one"} 4.0' in text


def test_figures_leave_out_what_was_refused_or_failed(busy):
    job = busy.queue.submit(["a"] * 4, [1] * 4, 1)
    error(busy.translate("a"), 429)
    busy.engine.may_go.set()
    job.future.result(SECONDS)
    error(busy.translate("fault"), 500)
    content = {
        "signature_name": "score",
        "inputs": {"source": ["a"], "target": ["b"]},
    }
    path = "/v1/models/one:predict"
    assert busy.client.post(path, json=content).status_code == 200
    pair = {"model": "one", "source": "a", "target": "b"}
    assert busy.client.post("/page/inspect", json=pair).status_code == 200
    text = busy.client.get("/metrics").text
    # Of the queue itself, before.
    assert 'deepnmt_sentences_total{model="one"} 5.0' in text
    # Of the three requests that were accepted.
    assert 'deepnmt_source_tokens_total{model="one"} 6.0' in text


def test_many_clients_at_once_each_get_their_own(server):
    wrong, threads = [], []

    def ask(client):
        for number in range(5):
            text = f"client {client} asks {number}"
            answer = server.translate(text).json()
            if answer != {"translatedText": text.upper()}:
                wrong.append(answer)

    for client in range(8):
        threads.append(threading.Thread(target=ask, args=(client,)))
        threads[-1].start()
    for thread in threads:
        thread.join(SECONDS)
    assert not wrong


def test_the_description_has_all_paths_and_forms(server):
    described = server.client.get("/openapi.json").json()
    assert set(described["paths"]) >= {"/translate", "/languages", "/readyz"}
    body = described["paths"]["/translate"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    assert set(fields) >= {"q", "source", "target", "alternatives"}
