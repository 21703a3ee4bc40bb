"""What `RestClient` does with servers that are broken, slow or strangers.

Each answer that is not that of an export is one `UserError`, a line that names
the address and the fault.
"""

import itertools
import json
import re
import socketserver
import threading

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.clients import RestClient

GOOD = {"text": ["ein Hund"]}
NBEST = {
    "text": [["ein Hund", ""]],
    "score": [[-1, float("-inf")]],
    "log_prob": [[-2.5, 0.0]],
    "truncated": [[False, False]],
    "source_truncated": [False],
}
SCORE = {
    "log_prob": [-3.0],
    "token_log_prob": [[-1.0, -2.0, 0.0]],
    "num_tokens": [2],
    "source_truncated": [False],
}


class Handler(socketserver.StreamRequestHandler):
    """Answers each request with the bytes that the test has chosen."""

    def handle(self):
        length, line = 0, b"first"
        self.server.requests.append(self.rfile.readline())
        while line.strip():
            line = self.rfile.readline()
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        self.rfile.read(length)
        try:
            for piece in self.server.pieces:
                self.wfile.write(piece)
                self.server.gone.wait(self.server.pause)
        except OSError:
            self.server.gone.set()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.requests, server.pause = [], 0
        server.gone = threading.Event()
        server.url = f"http://127.0.0.1:{server.server_address[1]}/v1/models/a"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.gone.set()
        server.shutdown()
        thread.join()


def http(body, status="200 OK", *headers):
    """The bytes of an answer; a body that is no bytes becomes JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def translate(client):
    return client.translate(["a dog"])


def told(server, pieces, ask=translate, **options):
    """The message about an answer, which must be one line."""
    server.pieces = pieces
    with pytest.raises(UserError) as error:
        ask(RestClient(server.url, **options))
    message = str(error.value)
    assert server.url in message and message.isprintable(), message
    return message


def test_good_answers_are_read(server):
    client = RestClient(server.url)
    server.pieces = [http({"outputs": GOOD})]
    assert client.translate(["a dog"]) == ["ein Hund"]
    assert client.translate("a dog") == "ein Hund"
    server.pieces = [http({"outputs": NBEST})]
    (best,) = client.translate_nbest("a dog")
    assert (best.text, best.score, best.log_prob) == ("ein Hund", -1, -2.5)
    server.pieces = [http({"outputs": SCORE})]
    assert client.score("a dog", "ein Hund").token_log_probs == (-1.0, -2.0)
    server.pieces = [http({"outputs": {"other": 7}})]
    assert client.predict("other", {}) == {"other": 7}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http(b"<html>"), "not JSON .* begins with b'<html>'"),
        (http(b"\xff\xfe\xff"), "not JSON"),
        (http(b"[" * 5_000), "not JSON"),
        (http(b""), "not JSON"),
        (http(rb'{"outputs": {"text": ["\udc00"]}}'), "not JSON .*halves"),
        (http(["a"]), "no named `outputs`"),
        (http({"outputs": ["a"]}), "no named `outputs`"),
        (http({"predictions": ["a"]}), "no named `outputs`"),
        (http({"outputs": {}}), "`text` is missing"),
        (http({"outputs": {"text": "ein Hund"}}), "`text`: .* valid list"),
        (http({"outputs": {"text": [1]}}), r"`text\[0\]`: .* valid string"),
        (http({"outputs": {"text": ["a", "b"]}}), "2 values for 1 sentences"),
        (b"", "no server answers"),
        (b"SSH-2.0-server\r\n", "no complete one of a web server"),
        (http(b"{", "200 OK", "Content-Length: 9"), "no complete one .*8 more"),
        (
            http(b"9\r\n{\r\n", "200 OK", "Transfer-Encoding: chunked"),
            "no complete one of a web server",
        ),
        (
            http({"error": "no\x1b[31m model\nhere"}, "404 Not Found"),
            r"rejected the request \(404\): no\\x1b\[31m model here$",
        ),
        (http(b"", "500 Broken"), r"rejected the request \(500\): no message"),
        (http(b"[7]", "503 Busy"), r"rejected the request \(503\): \[7\]"),
    ],
)
def test_an_answer_of_no_export_is_one_line(server, answer, said):
    message = told(server, [answer])
    assert re.search(said, message), message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": [["-1", 0]]}, "`score[0][0]`: Input should be a valid num"),
        ({"truncated": [[0, 0]]}, "`truncated[0][0]`"),
        ({"log_prob": [[-1.0]]}, "`log_prob` has other lengths than `text`"),
        ({"source_truncated": []}, "`source_truncated` has 0 values for 1"),
        ({"text": [["a", None]]}, "`text[0][1]`"),
    ],
)
def test_translations_of_other_types_are_refused(server, change, said):
    answer = http({"outputs": NBEST | change})
    assert said in told(
        server, [answer], lambda client: client.translate_nbest(["a dog"])
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_tokens": [4]}, "less than `num_tokens`"),
        ({"num_tokens": [-1]}, "`num_tokens[0]`"),
        ({"num_tokens": [2.0]}, "`num_tokens[0]`"),
        ({"token_log_prob": [-1.0]}, "`token_log_prob[0]`: Input should be a"),
    ],
)
def test_scores_of_other_types_are_refused(server, change, said):
    answer = http({"outputs": SCORE | change})
    assert said in told(
        server, [answer], lambda client: client.score(["a dog"], ["ein Hund"])
    )


def test_no_redirect_is_followed(server, tmp_path):
    (tmp_path / "answer").write_text(json.dumps({"outputs": GOOD}))
    for place in (f"{server.url}/other", f"file://{tmp_path}/answer"):
        for status in ("302 Found", "307 Moved", "303 See Other"):
            server.requests.clear()
            message = told(server, [http(b"", status, f"Location: {place}")])
            assert f"refers to another address ({status[:3]})" in message
            assert place in message
            assert len(server.requests) == 1


def test_a_deadline_is_one_of_the_whole_call(server):
    good = http({"outputs": GOOD})
    server.pieces = [bytes([byte]) for byte in good]
    assert RestClient(server.url).translate(["a dog"]) == ["ein Hund"]
    # Each byte comes in time, and all of them in twenty seconds.
    server.pause = 20 / len(good)
    assert "within 0.3 s" in told(server, server.pieces, timeout_s=0.3)
    # The connection is closed, which the server notices.
    assert server.gone.wait(60)


def test_a_silent_server_is_left_at_the_deadline(server):
    server.pause = 20
    assert "no whole answer within" in told(
        server, [b"HTTP/1.1"], timeout_s=0.2
    )


def test_an_endless_answer_is_left(server):
    endless = itertools.chain([http(b"")], itertools.repeat(b"[" * 2**16))
    message = told(server, endless, max_answer_bytes=1_000_000)
    assert "the answer has more than 1,000,000 bytes" in message


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hostname",
        "ftp://localhost/v1/models/a",
        "localhost:8501/v1/models/a",
        "http:///v1/models/a",
        "http://localhost:port/v1/models/a",
        "http://localhost:99999/v1/models/a",
        "http://localhost/v1/models/a?b=c",
        "http://localhost/v1/models/a b",
        "http://localhost/v1/models/a\r\nHost: b",
        "http://localhost/v1/models/ä",
        "http://[::1/v1/models/a",
    ],
)
def test_only_the_address_of_a_model_is_called(url):
    with pytest.raises(UserError, match="`url` must be the address") as error:
        RestClient(url)
    assert str(error.value).isprintable()


def test_a_password_is_not_shown():
    with pytest.raises(UserError, match="name of a user") as error:
        RestClient("http://me:secret@localhost/v1/models/a")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["timeout_s", "max_answer_bytes"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), None])
def test_limits_are_positive_numbers(name, value):
    with pytest.raises(UserError, match=f"`{name}` must be a positive number"):
        RestClient("http://localhost/v1/models/a", **{name: value})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"prefixes": "ab"}, UserError, "`prefixes` must have one value"),
        ({"prefixes": [1, 2]}, TypeError, "`prefixes` must be a string or"),
        ({"max_lengths": 5}, TypeError, "`max_lengths` must hold integers.* 5"),
        ({"max_lengths": "55"}, TypeError, "`max_lengths` must hold integers"),
        ({"max_lengths": [5, 0.5]}, TypeError, "must hold integers"),
        ({"constraints": "ab"}, TypeError, "`constraints` must hold sentences"),
        ({"constraints": 5}, TypeError, "`constraints` must be a string or"),
    ],
)
def test_what_is_given_is_checked_before_it_is_sent(given, error, message):
    client = RestClient("http://127.0.0.1:1/v1/models/a")
    with pytest.raises(error, match=message):
        client.translate(["eins", "zwei"], **given)
    with pytest.raises(error, match=message):
        client.translate_nbest(["eins", "zwei"], **given)
