"""A stand-in for the workers of `translate-files`: the process of the test."""

import contextlib

from keras_deepnmt.commands import translate_files
from keras_deepnmt.commands.shards import worker


class HerePool:
    """A pool whose only worker is this process."""

    num_workers, num_unused_gpus = 1, 0

    def __init__(self, ray, make, arguments, **_):
        self._made = make(*arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def results(self, calls):
        return (self._made(*arguments) for arguments in calls)


def work_here(monkeypatch):
    """Lets `translate-files` translate in this process, without Ray."""
    monkeypatch.setattr(translate_files, "WorkerPool", HerePool)
    monkeypatch.setattr(
        translate_files,
        "ray_session",
        lambda *_: contextlib.nullcontext(),
    )
    monkeypatch.setattr(worker, "start_backend", lambda cores: None)
