"""Loads new versions of exports while a server runs."""

import logging
import threading
from pathlib import Path

from keras_deepnmt.server.json_log import described, log_event
from keras_deepnmt.server.served_models import ServedModel
from keras_deepnmt.serving.verification import numbered_versions


class VersionWatch:
    """Looks for new versions in model folders, in a thread of its own.

    A version that cannot be loaded is logged once, and tried again: it may be
    copied just now.

    Args:
        folders: the models, and their model folders.
        every_s: seconds between two looks.
    """

    def __init__(self, folders: dict[ServedModel, Path], every_s: float = 2.0):
        self._folders = folders
        self._every_s = every_s
        self._faults: set[tuple[str, int, str]] = set()
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
        newest = max(numbered_versions(folder), default=0)
        if newest <= model.current.number or not model.is_ready:
            return
        try:
            model.replace(newest)
        except Exception as error:
            fault = (model.name, newest, str(error))
            if fault not in self._faults:
                self._faults.add(fault)
                log_event(
                    "version_failed",
                    logging.ERROR,
                    model=model.name,
                    version=newest,
                    **described(error),
                )
            return
        log_event("version", model=model.name, version=newest)
