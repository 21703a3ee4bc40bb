"""Runs a web application until a signal ends it, with all requests answered."""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.http_protocol import timed_protocol
from keras_deepnmt.server.json_log import described, log_event
from keras_deepnmt.server.served_models import ServedModels

_LOOPBACK = ("127.", "::1", "localhost")
# Connections that may be open; more are answered by 503.
_MOST_CONNECTIONS = 2_000


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach an address.

    Example:
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    return host.startswith(_LOOPBACK)


def open_socket(host: str, port: int) -> socket.socket:
    """Opens the address of a server."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{host}, port {port}: no server can be started there ({reason}). "
            "Choose another `--port` or `--host`."
        ) from error


def server_config(app: Any, timeout_s: float) -> uvicorn.Config:
    """Makes the configuration of the web server.

    `timeout_s` are the seconds for which requests are answered at the end, and
    after which connections without one are closed, see `timed_protocol`.
    """
    return uvicorn.Config(
        app,
        http=timed_protocol(timeout_s),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=int(timeout_s) + 1,
        # The addresses of clients are not used.
        proxy_headers=False,
    )


def run_server(
    app: Any,
    opened: socket.socket,
    models: ServedModels,
    timeout_s: float,
    grpc_server: Any = None,
) -> None:
    """Answers requests until SIGTERM or Ctrl-C, then those that it has.

    The models warm up meanwhile; if one cannot be made ready, the server ends
    with that error. After the signal, requests are answered for `timeout_s`
    seconds. A `GrpcServer` may run beside it.
    """
    server = _Server(server_config(app, timeout_s), grpc_server)
    host, port, *_ = opened.getsockname()
    faults: list[BaseException] = []
    watcher = threading.Thread(
        target=_wait_until_ready, args=(server, models, faults), daemon=True
    )
    watcher.start()
    shown = f"[{host}]" if ":" in host else host
    log_event(
        "listening",
        address=f"http://{shown}:{port}",
        pid=os.getpid(),
        models=list(models.by_name),
        grpc_port=None if grpc_server is None else grpc_server.port,
    )
    if grpc_server is not None:
        grpc_server.start()
    try:
        server.run(sockets=[opened])
    finally:
        if grpc_server is not None:
            grpc_server.stop()
    log_event("stopped")
    if faults:
        raise faults[0]


def _wait_until_ready(server, models, faults):
    for model in models.by_name.values():
        try:
            model.current.queue.ready.result()
        except BaseException as error:
            log_event(
                "fault", logging.ERROR, model=model.name, **described(error)
            )
            faults.append(error)
            server.should_exit = True
            return
        log_event("ready", model=model.name)


class _Server(uvicorn.Server):
    """Ends normally after a signal: uvicorn would send it again at the end."""

    def __init__(self, config, grpc_server=None):
        super().__init__(config)
        self._grpc_server = grpc_server

    async def shutdown(self, sockets=None):
        # At the same time, so that both have the same seconds.
        if self._grpc_server is not None:
            self._grpc_server.begin_to_stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig, frame):
        log_event("stopping", signal=signal.Signals(sig).name)
        super().handle_exit(sig, frame)
