"""Runs a web application in a thread, at a port of its own."""

import contextlib
import socket
import threading
import time

import uvicorn


@contextlib.contextmanager
def threaded_server(app, **options):
    """Yields the address, and stops the server at the end."""
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws="none", **options
    )
    server = uvicorn.Server(config)
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
