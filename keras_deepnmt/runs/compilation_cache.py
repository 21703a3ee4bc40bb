"""Keeps XLA compilations for the next start.

Training keeps them in the run folder. The commands that translate share the
folder `keras_deepnmt` in the user's cache folder.
"""

import contextlib
import os
import platform
import shutil
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from keras_deepnmt.files import bytes_sha256, lock_folder

USER_VARIABLE = "DEEPNMT_CACHE"
_OFF = ("", "0", "off")
_VARIABLE = "TF_XLA_FLAGS"
_FLAG = "--tf_xla_persistent_cache_directory"
MOST_BYTES = 2 * 2**30
LEAST_FREE_BYTES = 2**28
_LENGTH_DELIMITED = 2
# Locks of shared folders by path; they last as long as the process.
_locks = {}


def ask_for_cache(run_dir: str | Path) -> None:
    """Sets the XLA flag that makes TensorFlow keep compilations in `run_dir`.

    TensorFlow reads its flags when it first looks for devices: call this
    before the first TensorFlow operation (importing TensorFlow is fine). Other
    flags in the environment stay, and so does a cache folder set there. If the
    disk is nearly full, nothing is set.
    """
    flags = os.environ.get(_VARIABLE, "")
    if _FLAG not in flags and has_room(run_dir):
        folder = cache_dir(run_dir, "tensorflow").absolute()
        os.environ[_VARIABLE] = f'{flags} {_FLAG}="{folder}"'.strip()


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
    """Calls `ask_for_cache` for the user's cache, after tidying it.

    Where the folder cannot be written, nothing is kept.
    """
    folder = user_cache_dir()
    if folder is not None and _share(cache_dir(folder, "tensorflow")):
        ask_for_cache(folder)


def open_user_cache(backend: str) -> None:
    """Makes JAX use the user's cache; `ask_for_user_cache` told TensorFlow."""
    folder = user_cache_dir()
    if backend != "jax" or folder is None:
        return
    folder = cache_dir(folder, "jax")
    if _share(folder):
        _open_for_jax(folder)


def has_room(run_dir: str | Path) -> bool:
    """Whether `LEAST_FREE_BYTES` are free, and a file may be that large.

    A cache file that is cut short would end training. The folder need not
    exist.
    """
    folder = Path(run_dir).absolute()
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


@contextlib.contextmanager
def cache_asked_for(run_dir: str | Path, wanted: bool) -> Iterator[None]:
    """Calls `ask_for_cache` if `wanted`, and restores the environment later.

    Other runs of the same process have caches of their own.
    """
    before = os.environ.get(_VARIABLE)
    try:
        if wanted:
            ask_for_cache(run_dir)
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


def cache_dir(run_dir: str | Path, backend: str) -> Path:
    """Returns the cache folder of this backend version and these devices.

    Compiled code may hold instructions that another processor does not have,
    and depends on the flags of XLA.
    `backend` is `"tensorflow"` or `"jax"`.

    Example:
    >>> cache_dir("runs/demo", "tensorflow").parent.name
    'xla_cache'
    """
    processor = bytes_sha256(_processor().encode())[:12]
    name = f"{backend}-{metadata.version(backend)}-{processor}"
    return Path(run_dir) / "xla_cache" / name


def open_cache(run_dir: str | Path, backend: str) -> str | None:
    """Cleans a run folder's cache and checks that the backend uses it.

    Entries that were cut short are deleted, since TensorFlow would end
    training at them without an error. So are temporary files, and the oldest
    entries of a cache larger than `MOST_BYTES`, those of other processors and
    versions first.

    Returns:
        A message for the user if nothing will be kept, otherwise `None`.
    """
    if backend == "jax":
        return _open_for_jax(cache_dir(run_dir, "jax"))
    folder = cache_dir(run_dir, "tensorflow")
    if f'"{folder.absolute()}"' not in os.environ.get(_VARIABLE, ""):
        if not has_room(run_dir):
            return _no_room(folder)
        return None
    _tidy(folder)
    if _is_in_use(folder):
        return None
    return (
        f"{folder.parent}: compilations are not kept, since TensorFlow ran in "
        "this process before. Call `train` first in a fresh process, or use "
        "`deepnmt train`, and the next start will compile less."
    )


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
    folder.mkdir(parents=True, exist_ok=True)
    for file in list(_entries(folder)):
        if folder.name.startswith("tensorflow") and not (
            file.suffix == ".pb" and is_whole(file)
        ):
            file.unlink()
    entries = sorted(
        _entries(folder.parent),
        key=lambda file: (folder in file.parents, _last_use(file)),
    )
    total = sum(file.stat().st_size for file in entries)
    for file in entries:
        if total <= MOST_BYTES:
            return
        total -= file.stat().st_size
        file.unlink()


def _share(folder):
    """Makes and locks a cache folder that several processes use at once.

    While no other process uses the cache it is tidied; otherwise only what was
    cut short goes. The lock lasts as long as this process. Returns whether the
    folder can be used.
    """
    root = folder.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return False
        if root in _locks:
            return True
        alone = lock_folder(root)
        if alone is None:
            _remove_cut_entries(folder)
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


def _wait_for_share(folder):
    # Another process that tidies has the folder for a moment.
    for _ in range(20):
        lock = lock_folder(folder, shared=True)
        if lock is not None:
            return lock
        time.sleep(0.05)
    return None


def _remove_cut_entries(folder):
    for file in folder.glob("*.pb"):
        if not is_whole(file):
            file.unlink(missing_ok=True)


def _last_use(file):
    status = file.stat()
    return max(status.st_mtime, status.st_atime)


def _entries(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _is_in_use(folder):
    """Compiles a small function and checks that a cache entry appears."""
    import tensorflow as tf

    before = set(_entries(folder))
    number = float(time.time_ns() % 2**24)
    # A new constant each time: an existing entry is not written again.
    product = tf.function(
        lambda x: x * number, jit_compile=True, autograph=False
    )
    product(tf.constant(1.0))
    new = set(_entries(folder)) - before
    for file in new:
        file.unlink()
    return bool(new)


def _open_for_jax(folder):
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        if not has_room(folder):
            return _no_room(folder)
        _tidy(folder)
        jax.config.update("jax_compilation_cache_dir", str(folder))


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


def _no_room(folder):
    return (
        f"{folder.parent}: compilations are not kept, there is no room on the "
        "disk."
    )
