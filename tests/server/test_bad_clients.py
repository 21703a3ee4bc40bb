"""Clients that are slow, broken or hostile: an error, and the server lives on.

They connect to a real server, without a model. Bodies of wrong JSON, types and
sizes are in test_translate_requests.py.
"""

import json
import socket
import time

import pytest
from threaded_server import threaded_server
from toy_server import SECONDS

from keras_deepnmt.server.request_limits import RequestLimits

LIMITS = RequestLimits(max_bytes=2_000_000, timeout_s=0.3)


@pytest.fixture
def connect(make_server):
    """Opens connections to a server, which must live on."""
    server = make_server(limits=LIMITS)
    with threaded_server(server.app, LIMITS.timeout_s) as address:
        host, port = address.removeprefix("http://").split(":")
        opened = []

        def connect(*pieces):
            opened.append(socket.create_connection((host, int(port)), SECONDS))
            for piece in pieces:
                opened[-1].sendall(piece)
            return opened[-1]

        yield connect
        # Those of the test are still open.
        assert answer(connect(request("a"))) == (200, {"translatedText": "A"})
        for connection in opened:
            connection.close()


def request(q, length=None, **fields):
    body = json.dumps(
        {"q": q, "source": "de", "target": "en", **fields}
    ).encode()
    return head(len(body) if length is None else length) + body


def head(length):
    return (
        b"POST /translate HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
    )


def answer(connection):
    """The status and content of the answer; None if there is none."""
    content = b""
    try:
        while piece := connection.recv(2**16):
            content += piece
    except ConnectionResetError:
        pass
    if not content:
        return None
    top, _, body = content.partition(b"\r\n\r\n")
    try:
        return int(top.split()[1]), json.loads(body)
    except ValueError:
        return int(top.split()[1]), body


def test_a_connection_without_a_request_is_closed(connect):
    start = time.monotonic()
    for pieces in ((), (b"GET /he",), (b"GET /healthz HTTP/1.1\r\nA: b\r\n",)):
        assert answer(connect(*pieces)) is None
    assert time.monotonic() - start < SECONDS


def test_a_kept_connection_is_closed_with_half_of_a_request(connect):
    connection = connect(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /he")
    found = answer(connection)
    assert found[0] == 200


def test_half_of_a_body_is_refused_in_time(connect):
    assert answer(connect(request("a", length=1000))) == (
        408,
        {"error": "the body did not come within 0.3 s."},
    )


def test_a_connection_that_is_closed_in_a_body_does_no_harm(connect):
    for _ in range(5):
        connection = connect(request("a", length=1000))
        connection.close()


def test_many_open_connections_do_not_keep_others_out(connect):
    for _ in range(100):
        connect(b"POST /translate HT")
    assert answer(connect(request("b"))) == (200, {"translatedText": "B"})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff\r\n\r\n",
        b"GET /none HTTP/9.9\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(connect, content):
    connection = connect()
    try:
        connection.sendall(content)
    except (BrokenPipeError, ConnectionResetError):
        return  # refused before all was sent
    found = answer(connection)
    assert found is None or found[0] in (400, 404, 431)


def test_a_sentence_of_a_megabyte_is_refused(connect):
    status, content = answer(connect(request("Wort " * 200_000)))
    assert status == 400
    assert "at most 256 tokens. Received: 200,001" in content["error"]


def test_ten_thousand_strings_are_refused(connect):
    status, content = answer(connect(request(["Wort"] * 10_000)))
    assert status == 413
    assert "at most 256 sentences. Received: 10,000" in content["error"]


def test_a_body_that_is_announced_too_large_is_not_read(connect):
    status, content = answer(connect(head(10**12)))
    assert status == 413 and "2,000,000 bytes" in content["error"]
