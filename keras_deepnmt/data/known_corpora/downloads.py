"""Downloads files: continued after a break, verified, then renamed."""

import contextlib
import hashlib
import http.client
import logging
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import rich.console
import rich.progress

from keras_deepnmt.data.known_corpora.archives import verify_archive
from keras_deepnmt.data.known_corpora.sources import Archive
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_lock, open_unlinked, write_text
from keras_deepnmt.limits import limits

_log = logging.getLogger(__name__)
_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60
_RANGE_NOT_SATISFIABLE = 416


def download(
    address: str,
    path: Path,
    check: Callable[[Path], None],
    can_continue: bool = True,
    progress: bool = True,
) -> None:
    """Downloads a file to `path`, unless another process did so meanwhile.

    It gets its name when it is complete and `check` accepts it. What a broken
    connection leaves is kept as a hidden file and continued by the next
    download; give `can_continue=False` if `check` could not see that the parts
    are of two versions. A file that is larger than `Limits` allow is refused;
    one for which `check` raises a `UserError` is deleted.
    """
    with file_lock(path):
        if path.exists():
            return
        part = path.with_name(f".{path.name}.part")
        if not can_continue:
            part.unlink(missing_ok=True)
        try:
            _fetch(address, part, path.name, progress)
        except UserError:
            part.unlink(missing_ok=True)
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            if part.exists() and not part.stat().st_size:
                part.unlink()
            raise UserError(
                f"{address} could not be fetched ({error}). Try again, or take "
                "the file from a folder (`--data-dir`)."
            ) from error
        try:
            check(part)
        except UserError:
            part.unlink()
            raise
        os.replace(part, path)


def download_archive(
    archive: Archive, path: Path, record: Path, progress: bool
) -> None:
    """Downloads an archive to `path`, unless it is there, and verifies it.

    Without a published hash, the first file that is used is read to its end,
    and its hash is written to the file `record`, in the form of the command
    `sha256sum`.
    """
    if not path.exists():
        download(
            archive.address,
            path,
            lambda part: _check_download(archive, part),
            can_continue=archive.digest is not None,
            progress=progress,
        )
    if archive.digest is not None:
        check_archive(archive, path, "Delete it to have it fetched again.")
    elif record.exists():
        expected = record.read_text(encoding="utf-8").split()[0]
        recorded = Archive(archive.address, f"sha256:{expected}")
        check_archive(
            recorded, path, f"Delete it and {record} to have it fetched again."
        )
    else:
        verify_archive(path)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        write_text(record, f"{digest}  {path.name}\n")
        _log.warning(
            "%s: no hash of this file is published. Its SHA-256 %s was "
            "recorded in %s; compare it with another copy of the file.",
            archive.address,
            digest,
            record,
        )


def _check_download(archive, part):
    if archive.digest is not None:
        remedy = f"It came from {archive.address} and was not kept."
        check_archive(archive, part, remedy)
        return
    with open(part, "rb") as file:
        start = file.read(2)
    if start not in (b"\x1f\x8b", b"PK"):
        raise UserError(
            f"{archive.address}: sent no archive; it may have sent a page that "
            f"asks for a login. Download the archive by hand as {archive.name} "
            "and give its folder (`--data-dir`)."
        )


def check_archive(archive: Archive, path: Path, remedy: str) -> None:
    """Raises a `UserError` if a file has not the known hash of an archive."""
    if archive.digest is None:
        return
    kind, expected = archive.digest.split(":")
    with open(path, "rb") as file:
        # A hash of MD5 finds transmission errors, not falsified files.
        received = hashlib.file_digest(
            file, lambda: hashlib.new(kind, usedforsecurity=False)
        ).hexdigest()
    if received != expected:
        raise UserError(
            f"{path}: must have {kind.upper()} {expected}. Received: "
            f"{received}. {remedy}"
        )


def _fetch(address, part, name, progress):
    start = part.stat().st_size if part.exists() else 0
    try:
        response = _open(address, start)
    except urllib.error.HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE or not start:
            raise
        # What is there is longer than the file, or just as long.
        start = 0
        response = _open(address, start)
    with response:
        if start and response.status != http.client.PARTIAL_CONTENT:
            start = 0  # the server sends the whole file again
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        limits().check_download(total or 0, address)
        with open_unlinked(part, "ab" if start else "wb") as file:
            for chunk in _chunks(response, name, start, total, progress):
                limits().check_download(file.tell() + len(chunk), address)
                file.write(chunk)
            received = file.tell()
    if total is not None and received != total:
        raise http.client.HTTPException(
            f"the connection broke after {received:,} of {total:,} bytes"
        )


def _open(address, start):
    headers = {"User-Agent": "keras_deepnmt", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)
    return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)


def _chunks(response, name, start, total, progress):
    # Progress goes to stderr: stdout is for the command's results.
    bar = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
        rich.progress.TimeRemainingColumn(),
        console=rich.console.Console(stderr=True),
        disable=not progress,
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(bar)
        task = bar.add_task(name, total=total, completed=start)
        while chunk := response.read(_CHUNK_BYTES):
            bar.update(task, advance=len(chunk))
            yield chunk
