"""Starts Ray on this machine, or connects to a cluster."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from types import ModuleType

from keras_deepnmt.errors import UserError

# Where results wait until they are taken; few do.
_STORE_BYTES = 128 * 2**20
# Read by Ray when it is imported or started: it sends nothing to its makers,
# and prints neither advice nor the log of its processes.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    # Workers are no less important than other programs of the user.
    "RAY_worker_niceness": "0",
    "RAY_ENABLE_WORKER_PRESTART": "0",
    "RAY_prestart_worker_first_driver": "0",
    # A worker that asks for no GPU sees none.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
}


@contextlib.contextmanager
def ray_session(
    address: str | None = None, num_cpus: int | None = None
) -> Iterator[ModuleType]:
    """Yields Ray, started on this machine or connected to a cluster.

    What is started here ends with the block, or with this process. `address` is
    `auto`, for the cluster that this machine belongs to, or `HOST:PORT` of its
    head; `None` starts Ray on this machine alone, even if it belongs to a
    cluster. On this machine alone Ray may give `num_cpus` processors to
    workers, or all that there are.
    """
    ray = _import_ray()
    if address is None:
        options = {
            "address": "local",
            "num_cpus": num_cpus,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
        }
    else:
        options = {"address": address}
    with _ray_at(ray, address, options):
        yield ray


@contextlib.contextmanager
def _ray_at(ray, address, options):
    if address is not None and "://" in address:
        raise UserError(
            "`--ray` must be auto or HOST:PORT of the head of a cluster, on a "
            f"machine of the cluster. Received: {address}"
        )
    try:
        with _signals_kept():
            ray.init(
                logging_level=logging.CRITICAL, log_to_driver=False, **options
            )
    except (OSError, RuntimeError, ValueError) as error:
        place = "on this machine" if address is None else f"at {address}"
        raise UserError(
            f"Ray {place} cannot be used: {error}"
            + ("" if address is None else " Is `ray start --head` running?")
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray():
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    with _signals_kept():
        import ray
        import ray.exceptions
    return ray


@contextlib.contextmanager
def _signals_kept():
    """Puts the handlers of signals back, which Ray replaces by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
