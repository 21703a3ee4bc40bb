"""Runs a web application in a thread, at a port of its own."""

import contextlib
import socket
import threading
import time

import uvicorn

from keras_deepnmt.server.process import server_config


@contextlib.contextmanager
def threaded_server(app, timeout_s=60):
    """Yields the address, and stops the server at the end."""
    server = uvicorn.Server(server_config(app, timeout_s))
    with socket.create_server(("127.0.0.1", 0)) as opened:
        thread = threading.Thread(target=server.run, args=([opened],))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield f"http://127.0.0.1:{opened.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
