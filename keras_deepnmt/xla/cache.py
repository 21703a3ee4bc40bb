"""Keeps XLA compilations for the next start.

All runs and commands of a machine share the folder `keras_deepnmt` in the
user's cache folder. What is in it is run, so nobody else may write there.
"""

import contextlib
import importlib.util
import logging
import os
import platform
import shutil
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from keras_deepnmt.files import bytes_sha256, lock_folder
from keras_deepnmt.private_folders import (
    is_own_file,
    make_private,
    why_not_private,
)

USER_VARIABLE = "DEEPNMT_CACHE"
_OFF = ("", "0", "off")
_VARIABLE = "TF_XLA_FLAGS"
_FLAG = "--tf_xla_persistent_cache_directory"
MOST_BYTES = 2 * 2**30
LEAST_FREE_BYTES = 2**28
_LENGTH_DELIMITED = 2
_DAY = 24 * 60 * 60
# Locks of shared folders by path; they last as long as the process.
_locks = {}
# Shared folders of which a warning has said that they are not used.
_told = set()
_logger = logging.getLogger(__name__)


def user_cache_dir() -> Path | None:
    """Returns the folder for compilations of all commands, `None` for none.

    It is `$DEEPNMT_CACHE`, unless that is empty, 0 or off: then nothing is
    kept. Where it is not set, it is the folder `keras_deepnmt` in
    `$XDG_CACHE_HOME` or in `~/.cache`.
    """
    chosen = os.environ.get(USER_VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in _OFF else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base) / "keras_deepnmt"


def ask_for_user_cache() -> None:
    """Sets the XLA flag that makes TensorFlow keep compiled programs.

    It tidies the user's cache first. TensorFlow reads its flags when it first
    looks for devices: call this before the first TensorFlow operation
    (importing TensorFlow is fine). Other flags in the environment stay, and so
    does a cache folder set there. If the disk is nearly full, or the folder
    cannot be written, or other users can write to it, or TensorFlow is not
    installed, nothing is set.
    """
    if importlib.util.find_spec("tensorflow") is None:
        return
    folder = user_cache_dir()
    if folder is None or _is_elsewhere(folder, "tensorflow"):
        return
    folder = cache_dir(folder, "tensorflow").absolute()
    flags = os.environ.get(_VARIABLE, "")
    if has_room(folder) and _share(folder) and _FLAG not in flags:
        os.environ[_VARIABLE] = f'{flags} {_FLAG}="{folder}"'.strip()


@contextlib.contextmanager
def user_cache_asked_for(wanted: bool) -> Iterator[None]:
    """Calls `ask_for_user_cache` if `wanted`; restores the environment later.

    The processes that the caller starts afterwards choose for themselves.
    """
    before = os.environ.get(_VARIABLE)
    try:
        if wanted:
            ask_for_user_cache()
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


def open_user_cache(backend: str) -> None:
    """Makes JAX use the user's cache; `ask_for_user_cache` told TensorFlow."""
    folder = user_cache_dir()
    if backend != "jax" or folder is None:
        return
    import jax

    folder = cache_dir(folder, "jax")
    if (
        jax.config.jax_compilation_cache_dir is None
        and has_room(folder)
        and _share(folder)
    ):
        jax.config.update("jax_compilation_cache_dir", str(folder))


def describe_unused_cache(backend: str) -> str | None:
    """Says why the programs that this process compiles are not kept.

    It is called after `open_user_cache`. The result is `None` if they are kept,
    or if the user has chosen that they are not.
    """
    folder = user_cache_dir()
    if folder is None or _is_elsewhere(folder, backend):
        return None
    folder = cache_dir(folder, backend).absolute()
    if not has_room(folder):
        reason = "there is no room on the disk."
    elif fault := _why_not_private(folder):
        if folder.parent in _told:
            return None
        reason = fault
    elif folder.parent not in _locks:
        reason = (
            "this folder cannot be written. Set the environment variable "
            f"{USER_VARIABLE} to another one, or to off."
        )
    elif backend == "tensorflow" and not _is_in_use(folder):
        reason = (
            "TensorFlow looked for devices before. Call `train` first in a "
            "fresh process, or use `deepnmt train`, and the next start will "
            "compile less."
        )
    else:
        return None
    return f"{folder.parent}: compiled programs are not kept: {reason}"


def _is_elsewhere(folder, backend):
    """Whether the user has told the backend itself where its cache is."""
    flags = os.environ.get(_VARIABLE, "")
    ours = str(cache_dir(folder, backend).absolute())
    if backend == "tensorflow":
        return _FLAG in flags and f'"{ours}"' not in flags
    import jax

    return jax.config.jax_compilation_cache_dir not in (None, ours)


def has_room(folder: str | Path) -> bool:
    """Whether `LEAST_FREE_BYTES` are free, and a file may be that large.

    A cache file that is cut short would end training. The folder need not
    exist.
    """
    folder = Path(folder).absolute()
    while not folder.is_dir():
        folder = folder.parent
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        return False
    try:
        import resource
    except ImportError:  # not on Windows
        return True
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return limit in (resource.RLIM_INFINITY, -1) or limit >= LEAST_FREE_BYTES


def cache_dir(cache: str | Path, backend: str) -> Path:
    """Returns the cache folder of this backend version and these devices.

    Compiled code may hold instructions that another processor does not have,
    and depends on the flags of XLA.
    `backend` is `"tensorflow"` or `"jax"`.
    """
    processor = bytes_sha256(_processor().encode())[:12]
    name = f"{backend}-{metadata.version(backend)}-{processor}"
    return Path(cache) / "xla_cache" / name


def is_whole(file: Path) -> bool:
    """Whether a TensorFlow cache entry was written completely.

    An entry is one protocol buffer, each field of which begins with its
    length: the last field must end where the file ends.
    """
    size = file.stat().st_size
    with open(file, "rb", opener=_open_unnoticed) as stream:
        try:
            while stream.tell() < size:
                if _number(stream) % 8 == _LENGTH_DELIMITED:
                    stream.seek(_number(stream), os.SEEK_CUR)
                else:
                    _number(stream)
            return 0 < size == stream.tell()
        except EOFError:
            return False


def _open_unnoticed(path, flags):
    """Opens a file without changing its time of last access."""
    try:
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # the file of another user
        return os.open(path, flags)


def _number(stream):
    """Reads a variable-length number of a protocol buffer."""
    value, shift = 0, 0
    while byte := stream.read(1):
        value |= (byte[0] & 127) << shift
        shift += 7
        if byte[0] < 128:
            return value
    raise EOFError


def _tidy(folder):
    """Removes unusable entries, and old ones if the cache is too large."""
    for file in list(_entries(folder)):
        if not is_own_file(file) or (
            folder.name.startswith("tensorflow")
            and not (file.suffix == ".pb" and is_whole(file))
        ):
            file.unlink()
    _shrink(folder, time.time())


def _shrink(folder, latest_use):
    """Removes entries until the cache is below its limit, the oldest first.

    Those of other processors and versions go first. Entries that were used
    after `latest_use` stay.
    """
    entries = sorted(
        (folder in file.parents, _last_use(file), file)
        for file in _entries(folder.parent)
    )
    sizes = [file.stat().st_size for _, _, file in entries]
    excess = sum(sizes) - MOST_BYTES
    for size, (_, last_use, file) in zip(sizes, entries, strict=True):
        if excess > 0 and last_use <= latest_use:
            file.unlink(missing_ok=True)
            excess -= size


def _share(folder):
    """Makes and locks a cache folder that several processes use at once.

    If no other process uses the cache, it is tidied. Otherwise only incomplete
    entries are removed and, if the cache is too large, entries that were not
    used for a day: TensorFlow fails if an entry disappears while it is read.
    The lock lasts as long as this process. Returns whether the folder can be
    used; it cannot if another user may have put programs there.
    """
    root = folder.parent
    if fault := _why_not_private(folder):
        if root not in _told:
            _told.add(root)
            _logger.warning("Compiled programs are not kept: %s", fault)
        return False
    try:
        for one in _private_folders(folder):
            make_private(one)
        if not os.access(folder, os.W_OK):
            return False
        if root in _locks:
            return True
        alone = lock_folder(root)
        if alone is None:
            _remove_cut_entries(folder)
            _shrink(folder, time.time() - _DAY)
        else:
            try:
                _tidy(folder)
            finally:
                os.close(alone)
        lock = _wait_for_share(root)
    except OSError:
        return False
    if lock is not None:
        _locks[root] = lock
    return lock is not None


def _private_folders(folder):
    """The cache, the folder that processes share, and that of a backend."""
    return folder.parents[1], folder.parent, folder


def _why_not_private(folder):
    faults = map(why_not_private, _private_folders(folder))
    return next(filter(None, faults), None)


def _wait_for_share(folder):
    # Another process that tidies the folder locks it for a moment.
    for _ in range(20):
        lock = lock_folder(folder, shared=True)
        if lock is not None:
            return lock
        time.sleep(0.05)
    return None


def _remove_cut_entries(folder):
    for file in folder.glob("*.pb"):
        if not (is_own_file(file) and is_whole(file)):
            file.unlink(missing_ok=True)


def _last_use(file):
    status = file.stat()
    return max(status.st_mtime, status.st_atime)


def _entries(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _is_in_use(folder):
    """Compiles a small function and checks that a cache entry appears."""
    import tensorflow as tf

    def double(x):
        return 2.0 * x

    # Another name each time: an existing entry is not written again.
    double.__name__ = f"double_{os.getpid()}_{time.time_ns()}"
    before = set(_entries(folder))
    tf.function(double, jit_compile=True, autograph=False)(tf.constant(1.0))
    for file in set(_entries(folder)) - before:
        # Other processes write to the folder, too.
        with contextlib.suppress(FileNotFoundError):
            if double.__name__.encode() in file.read_bytes():
                file.unlink()
                return True
    return False


def _processor():
    words = {platform.machine(), platform.processor()}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("model name", "flags", "Features")):
                    words.add(line.strip())
        for file in Path("/proc/driver/nvidia/gpus").glob("*/information"):
            text = file.read_text(encoding="utf-8")
            words.update(x for x in text.splitlines() if x.startswith("Model"))
    except OSError:
        pass
    if flags := os.environ.get("XLA_FLAGS"):
        words.add(flags)
    return "\n".join(sorted(words))
