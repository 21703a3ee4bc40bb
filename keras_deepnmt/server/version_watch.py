"""Loads new versions of exports while a server runs."""

import logging
import threading
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.json_log import described, log_event
from keras_deepnmt.server.served_models import ServedModel
from keras_deepnmt.serving.verification import numbered_versions


class VersionWatch:
    """Looks for new versions in model folders, in a thread of its own.

    A version that cannot be loaded is logged once. It may be copied just now,
    and is tried again whenever its files have changed.

    It looks into the folder of each model every `every_s` seconds.
    """

    def __init__(self, folders: dict[ServedModel, Path], every_s: float = 2.0):
        self._folders = folders
        self._every_s = every_s
        self._faults: set[tuple[str, int | None, str]] = set()
        # The files that could not be loaded, as they were.
        self._broken: dict[str, list[tuple]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="versions", daemon=True
        )
        if folders:
            self._thread.start()

    def stop(self) -> None:
        """Looks for no more versions."""
        self._stopped.set()

    def _run(self):
        while not self._stopped.wait(self._every_s):
            for model, folder in self._folders.items():
                self._look(model, folder)

    def _look(self, model, folder):
        newest = None
        try:
            newest = max(numbered_versions(folder), default=0)
            if newest <= model.current.number or not model.is_ready:
                return
            files = _files(folder / str(newest))
            if files == self._broken.get(model.name):
                return
            self._broken[model.name] = files
            model.replace(newest)
        except Exception as error:
            # The folder itself may be out of reach for a while.
            fault = (model.name, newest, str(error))
            if fault not in self._faults:
                self._faults.add(fault)
                log_event(
                    "version_failed",
                    logging.ERROR,
                    model=model.name,
                    version=newest,
                    **described(error),
                    **_reason(error),
                )
            return
        log_event("version", model=model.name, version=newest)


def _reason(error):
    """What to do, where that is known; other errors may have any text."""
    return {"reason": str(error)} if isinstance(error, UserError) else {}


def _files(folder):
    """The content of a folder, its sizes and times, to see that it changed."""
    found = []
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.stat()
        found.append((path, status.st_size, status.st_mtime_ns))
    return found
