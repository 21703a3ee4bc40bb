"""What must be true of a process that keeps the memory it frees.

* a block that is as large as one before costs no new pages, in any thread
* settings of the user's environment stay as they are
"""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from keras_deepnmt.training import keep_freed_memory

PROGRAM = """
import resource, sys, threading
from keras_deepnmt.xla.memory import keep_freed_memory

def take_and_free():
    bytes(50_000_000) + b"1"

def pages_of(calls):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        take_and_free()
    thread = threading.Thread(target=take_and_free)
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    assert keep_freed_memory()
pages_of(2)
print(pages_of(10))
"""


def pages(kept):
    """The pages that a process takes for blocks that it has freed before."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kept],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


# Without glibc `keep_freed_memory` does nothing, as another test says.
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="Only glibc has these settings."
)
def test_memory_that_was_freed_is_used_again():
    # 11 times two blocks of 50 MB, of 4 KiB a page.
    assert pages("returned") > 100_000
    assert pages("kept") < 1_000


@pytest.mark.parametrize(
    "name, value",
    [
        ("MALLOC_TRIM_THRESHOLD_", "1000"),
        ("MALLOC_ARENA_MAX", "2"),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=10"),
    ],
)
def test_settings_of_the_environment_stay(monkeypatch, name, value):
    monkeypatch.setattr("ctypes.CDLL", None)  # whatever asks it fails
    monkeypatch.setenv(name, value)
    assert not keep_freed_memory()


def test_other_c_libraries_are_not_asked(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", None)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
