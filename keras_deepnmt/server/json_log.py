"""The log of a server: a line of JSON for each event, without users' texts."""

import datetime
import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

EVENTS = "keras_deepnmt.server.events"
_LIBRARIES = ("keras_deepnmt", "uvicorn.error", "asyncio", "py.warnings")


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Logs an event with its fields.

    The fields are values of JSON. None may hold a text of a user.
    """
    logging.getLogger(EVENTS).log(level, event, extra={"fields": fields})


@contextmanager
def json_log(quiet: bool = False, stream: Any = None) -> Iterator[None]:
    """Writes events, and what libraries log, as lines of JSON.

    Of a message of a library only the form is written, without the values that
    it is filled with, and of an exception the type and the lines of code: these
    values may be texts of users.

    With `quiet` only warnings and errors are written. The stream is standard
    error if none is given.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter())
    level = logging.WARNING if quiet else logging.INFO
    before = []
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        before.append(
            (logger, logger.handlers[:], logger.level, logger.propagate)
        )
        logger.handlers = [handler]
        # Of uvicorn the server reports start and end itself.
        is_own = name == "keras_deepnmt"
        logger.setLevel(level if is_own else logging.WARNING)
        logger.propagate = False
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, handlers, level, propagates in before:
            logger.handlers = handlers
            logger.setLevel(level)
            logger.propagate = propagates


class _Formatter(logging.Formatter):
    def format(self, record):
        moment = datetime.datetime.fromtimestamp(
            record.created, datetime.UTC
        ).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower()}
        if record.name == EVENTS:
            line |= {"event": record.msg, **record.fields}
        else:
            line |= {"event": "message", "logger": record.name}
            # A warning is the text alone, which may be any.
            if record.name != "py.warnings":
                line["message"] = str(record.msg).splitlines()[0][:200]
        if record.exc_info:
            line |= described(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def described(error: BaseException) -> dict[str, Any]:
    """Returns the type of an exception and its lines of code, for a log."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "where": [f"{frame.filename}:{frame.lineno}" for frame in frames[-8:]],
    }
