"""Limits on downloads and on what compressed files unpack to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from keras_deepnmt.errors import UserError

_GIGABYTE = 10**9
# Small files may expand more: a line that repeats is not an attack.
_FREE_BYTES = 100_000_000


@dataclass(frozen=True)
class Limits:
    """What keeps a file of a stranger from filling a disk or the memory.

    Args:
        max_download_gb: Gigabytes that the download of one file may have.
        max_unpacked_gb: Gigabytes that one compressed file, or all files of an
            archive together, may have when they are unpacked.
        max_expansion: Bytes to which a byte of a compressed file may expand, on
            average, after the first 100 megabytes. Text expands to 3 to 10.

    Raises:
        UserError: if a limit is not above 0.

    Example:
    >>> Limits(max_download_gb=0.5).max_unpacked_gb
    200.0
    """

    max_download_gb: float = 20.0
    max_unpacked_gb: float = 200.0
    max_expansion: float = 100.0

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise UserError(
                    f"`{field.name}` must be above 0. Received: "
                    f"{field.name}={value}"
                )

    def check_download(self, size: int, address: str) -> None:
        """Raises a `UserError` if a download has more bytes."""
        if size > self.max_download_gb * _GIGABYTE:
            raise UserError(
                f"{address}: must have at most {self.max_download_gb:g} GB. "
                f"Received: {size / _GIGABYTE:,.3g} GB. If that is right, give "
                "a larger `--max-download-gb`."
            )

    def check_unpacked(self, size: int, packed: int, file: object) -> None:
        """Raises a `UserError` if `packed` bytes unpack to too many bytes."""
        remedy = "If that is right, unpack it yourself, or give a larger"
        if size > self.max_unpacked_gb * _GIGABYTE:
            raise UserError(
                f"{file}: must unpack to at most {self.max_unpacked_gb:g} GB. "
                f"Received: {size / _GIGABYTE:,.3g} GB or more. {remedy} "
                "`--max-unpacked-gb`."
            )
        if size > max(_FREE_BYTES, self.max_expansion * packed):
            raise UserError(
                f"{file}: must unpack to at most {self.max_expansion:g} times "
                f"its size. Received: {size:,} bytes or more from {packed:,}. "
                f"{remedy} `--max-expansion`."
            )


_USED = [Limits()]


def limits() -> Limits:
    """Returns the limits that hold now."""
    return _USED[-1]


@contextmanager
def used_limits(chosen: Limits) -> Iterator[None]:
    """Uses other limits in a block, in all threads."""
    _USED.append(chosen)
    try:
        yield
    finally:
        _USED.remove(chosen)
