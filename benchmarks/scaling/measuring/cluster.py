"""A cluster of local workers, and the bytes that they exchange."""

import contextlib
import json
import os
import socket
from pathlib import Path

from benchmarks.shared.worker_process import WorkerProcess

WORKER = Path(__file__).parent / "worker.py"


class Cluster:
    """Local worker processes that form a cluster by TF_CONFIG.

    `length` is the number of tokens per row; `seed` is that of weights, dropout
    and ids.
    """

    def __init__(self, num_workers, length, seed):
        cores = sorted(os.sched_getaffinity(0))
        sockets = [socket.socket() for _ in range(num_workers)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        names = [f"127.0.0.1:{free.getsockname()[1]}" for free in sockets]
        for free in sockets:
            free.close()
        self.workers_per_core = -(-num_workers // len(cores))
        self._stack, self._workers = contextlib.ExitStack(), []
        for index in range(num_workers):
            tf_config = {
                "cluster": {"worker": names},
                "task": {"type": "worker", "index": index},
            }
            worker = WorkerProcess(
                *(WORKER, "--core", cores[index % len(cores)]),
                *("--length", length, "--seed", seed),
                TF_CONFIG=json.dumps(tf_config),
            )
            self._workers.append(self._stack.enter_context(worker))

    def __call__(self, *question):
        """Asks all workers; returns the first one's answer, and bytes sent."""
        before = _loopback_bytes()
        for worker in self._workers:
            worker.ask(*question)
        answers = [worker.answer() for worker in self._workers]
        return answers[0], _loopback_bytes() - before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()


def _loopback_bytes():
    """Returns the bytes that this machine has sent over loopback so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[8])
    return 0
