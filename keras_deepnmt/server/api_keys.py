"""The keys that a server asks its clients for."""

import hmac
import os
from pathlib import Path

from keras_deepnmt.errors import UserError

VARIABLE = "DEEPNMT_API_KEYS"


class ApiKeys:
    """The keys of which a client must give one; without any, none is needed."""

    def __init__(self, keys: list[str]):
        self._keys = [key.encode() for key in keys]

    def __len__(self) -> int:
        return len(self._keys)

    def accept(self, key: str | None) -> bool:
        """Whether a client with this key may ask, in the time of any guess."""
        if not self._keys:
            return True
        given = (key or "").encode("utf-8", "replace")
        # All are compared: the time says nothing about a key.
        return any([hmac.compare_digest(given, known) for known in self._keys])


def read_api_keys(file: str | Path | None) -> ApiKeys:
    """Reads the keys of a server.

    The file has a key in each line; empty lines and those that begin with `#`
    do not count. Without a file, the keys are in the environment variable
    `DEEPNMT_API_KEYS`, with spaces between them.
    """
    if file is None:
        keys = os.environ.get(VARIABLE, "").split()
        _check_ascii(keys, VARIABLE)
        return ApiKeys(keys)
    try:
        # Editors of Windows put a mark of UTF-8 before the first key.
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: must be UTF-8, with a key a line.") from error
    keys = [key for line in lines if (key := line.strip())[:1] not in ("", "#")]
    if not keys:
        raise UserError(f"{file}: has no key. Write one in a line, or more.")
    for number, key in enumerate(keys, start=1):
        if len(key.split()) > 1:
            raise UserError(
                f"{file}: a key must have no space. Received: one in key "
                f"{number}"
            )
    _check_ascii(keys, file)
    return ApiKeys(keys)


def _check_ascii(keys, source):
    """Refuses keys that clients could not write in a header."""
    for number, key in enumerate(keys, start=1):
        if not key.isascii():
            raise UserError(
                f"{source}: a key must have ASCII characters alone, as headers "
                f"of HTTP have. Received: others in key {number}. Choose "
                "another key."
            )
