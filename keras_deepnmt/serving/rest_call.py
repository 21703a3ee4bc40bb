"""One call of a web server, which may be slow, broken or a stranger's."""

import contextlib
import functools
import http.client
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import parse_json
from keras_deepnmt.terminal_text import escape_controls

_PIECE = 2**16
_MOST_CHARACTERS = 300


def check_url(url: str) -> None:
    """Refuses what is not the plain address of a model on a web server."""
    try:
        fault = _fault(url)
    except ValueError as error:  # of `urlsplit`, for a port and the like
        fault = str(error)
    if fault is not None:
        raise UserError(
            "`url` must be the address of a model, such as "
            f"http://localhost:8501/v1/models/demo. {fault}"
        )


def _fault(url):
    parts = urlsplit(url)
    if parts.username is not None:
        # Not shown: it may have a password.
        return "It must not hold the name of a user."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"Received: {url!r}"
    if not (url.isascii() and url.isprintable()) or " " in url:
        return f"Write other characters as %C3%A4. Received: {url!r}"
    if parts.query or parts.fragment or parts.port == 0:
        return f"It ends with the model, without ? and #. Received: {url!r}"
    return None


def check_api_key(key: str | None) -> None:
    """Refuses a key that no header of a request can hold; does not show it."""
    if key is not None and not (key.isascii() and key.isprintable() and key):
        raise UserError(
            "`api_key` must have printable ASCII characters only, and at least "
            f"one. Received: a text of {len(key)} characters"
        )


def post_json(
    url: str,
    content: Any,
    seconds: float,
    most_bytes: int,
    api_key: str | None = None,
) -> Any:
    """Sends JSON, and returns the JSON of the answer.

    The address must be one that `check_url` accepts; redirects are not
    followed. `seconds` is the time for all of it, from the search for the host
    to the last byte of the answer, and `most_bytes` is the size of the largest
    answer that is read.
    """
    headers = {"Content-Type": "application/json"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    body = json.dumps(content).encode()
    call = _Call(url, body, headers, seconds, most_bytes)
    # In a thread: the timeout of a socket is one of each piece, not of all.
    thread = threading.Thread(target=call.run, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
        if thread.is_alive():
            raise UserError(
                f"{url}: no whole answer within {seconds:g} s. Give a larger "
                "`timeout_s`, or fewer sentences."
            )
    finally:
        call.stop()
    if call.error is not None:
        raise call.error
    return call.answer


class _Call:
    """A request in another thread, which `stop` ends."""

    def __init__(self, url, body, headers, seconds, most_bytes):
        self.answer = self.error = None
        self._url, self._body, self._headers = url, body, headers
        self._seconds, self._most_bytes = seconds, most_bytes
        self._lock, self._sockets, self._stopped = threading.Lock(), [], False

    def run(self):
        try:
            self.answer = self._ask()
        except BaseException as error:
            self.error = error

    def stop(self):
        with self._lock:
            self._stopped = True
            for opened in self._sockets:
                # The thread, which may wait for more, finds the end.
                with contextlib.suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)

    def note(self, opened):
        with self._lock:
            if self._stopped:
                raise ConnectionAbortedError("stopped")
            self._sockets.append(opened)

    def _ask(self):
        request = urllib.request.Request(self._url, self._body, self._headers)
        try:
            opener = _opener(self.note)
            # This timeout only ends the thread where it cannot be stopped.
            seconds = 2 * self._seconds
            with opener.open(request, timeout=seconds) as answer:
                body = self._read(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise UserError(self._describe(error)) from error
        except OSError as error:
            raise UserError(
                f"{self._url}: no server answers ({error})."
            ) from error
        except http.client.HTTPException as error:
            raise UserError(
                f"{self._url}: the answer is no complete one of a web server "
                f"({_shown(repr(error))})."
            ) from error
        try:
            return parse_json(body, "it")
        except UserError as error:
            raise UserError(
                f"{self._url}: the answer is not JSON that can be read "
                f"({error}). It begins with {body[:40]!r}. Is this the "
                "address of the model?"
            ) from error

    def _read(self, answer):
        expected, pieces, size = answer.length, [], 0
        while piece := answer.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self._most_bytes:
                raise UserError(
                    f"{self._url}: the answer has more than "
                    f"{self._most_bytes:,} bytes. Give a larger "
                    "`max_answer_bytes`, or fewer sentences."
                )
        if expected is not None and size < expected:
            raise http.client.IncompleteRead(b"", expected - size)
        return b"".join(pieces)

    def _describe(self, error):
        if 300 <= error.code < 400:
            place = _shown(error.headers.get("Location", "nowhere"))
            return (
                f"{self._url}: the server refers to another address "
                f"({error.code}), which is not followed: {place}"
            )
        message = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            message = error.read(_PIECE).decode("utf-8", "replace")
        with contextlib.suppress(
            ValueError, LookupError, TypeError, RecursionError
        ):
            message = str(json.loads(message)["error"])
        return (
            f"{self._url}: the server rejected the request ({error.code}): "
            f"{_shown(message) or 'no message'}"
        )


def _opener(note):
    """Opens http and https, by a proxy if there is one, and no redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(note),
        _Https(note),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Http(urllib.request.HTTPHandler):
    def __init__(self, note):
        super().__init__()
        self._kind = _noting(http.client.HTTPConnection, note)

    def http_open(self, request):
        return self.do_open(self._kind, request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, note):
        super().__init__(context=_context())
        self._kind = _noting(http.client.HTTPSConnection, note)

    def https_open(self, request):
        return self.do_open(self._kind, request, context=_context())


@functools.cache
def _context():
    return ssl.create_default_context()


def _noting(kind, note):
    """A class of connections that call `note` with their sockets."""

    class Connection(kind):
        def connect(self):
            super().connect()
            note(self.sock)

    return Connection


def _shown(text):
    """What a server says, in one short line."""
    text = escape_controls(" ".join(text.split()))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:297]}..."
