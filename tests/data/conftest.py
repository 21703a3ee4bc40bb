"""A toy corpus to prepare, and a web server for the tests of downloads."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from toy_corpus import toy_pairs, write_pairs

from keras_deepnmt.data.preparation.options import PrepareOptions


@pytest.fixture
def options(tmp_path):
    """300 train, 11 valid and 7 test pairs that do not overlap."""
    pairs = toy_pairs(318)
    return PrepareOptions(
        train=[write_pairs(tmp_path, "train", pairs[:300])],
        valid=write_pairs(tmp_path, "valid", pairs[300:311]),
        test=write_pairs(tmp_path, "test", pairs[311:]),
        vocabulary_size=97,
    )


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, name = self.server, self.path[1:]
        server.requests.append(name)
        page, sent = server.pages.get(name), self.headers.get("Range")
        if page is None:
            self.send_error(404)
            return
        start = 0
        if sent and server.continues:
            start = int(sent.removeprefix("bytes=").removesuffix("-"))
            if start >= len(page):
                self.send_error(416)
                return
        server.starts.append(start)
        self.send_response(206 if start else 200)
        if server.tells_length:
            self.send_header("Content-Length", str(len(page) - start))
        self.end_headers()
        # A connection that breaks in the middle, until it is continued.
        breaks = "half" in name and not sent
        self.wfile.write(page[start : len(page) // 2 if breaks else None])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def serve(monkeypatch):
    """Serves pages, given by name, and gives the server.

    It has an `address`, lists the names in `requests` and the first bytes in
    `starts`, and ignores requests to continue unless `continues`. It says how
    long a page is if it `tells_length`.
    """
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests, server.starts, server.continues = [], [], True
        server.tells_length = True
        server.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()

        def start(pages):
            server.pages = pages
            return server

        yield start
        server.shutdown()
        thread.join()
