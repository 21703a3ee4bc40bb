"""What must be true of hashing, locking and writing files.

* a file is replaced as a whole, or stays as it was and nothing else is left
* a lock keeps other processes out, and ends with its process
* a staged folder appears when it is complete; leftovers of dead processes go,
  those of running ones are refused
* hashes are SHA-256 of the bytes
"""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    StagedFolder,
    atomic_file,
    bytes_sha256,
    file_sha256,
    lines_sha256,
    lock_folder,
    write_json,
    write_text,
)


def test_a_file_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "file"
    write_text(file, "old")
    with atomic_file(file) as temporary:
        temporary.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "file"
    write_text(file, "old")
    with pytest.raises(KeyboardInterrupt), atomic_file(file) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_json_keeps_every_letter(tmp_path):
    write_json(tmp_path / "file", {"de": "schläft"})
    text = (tmp_path / "file").read_text(encoding="utf-8")
    assert "schläft" in text and text.endswith("}\n")
    assert json.loads(text) == {"de": "schläft"}


def test_hashes_are_those_of_the_bytes(tmp_path):
    content = "a\nä\n".encode()
    (tmp_path / "file").write_bytes(content)
    expected = hashlib.sha256(content).hexdigest()
    assert file_sha256(tmp_path / "file") == expected
    assert bytes_sha256(content) == lines_sha256(["a", "ä"]) == expected


LOCK = """
import sys
from keras_deepnmt.files import lock_folder
lock = lock_folder(sys.argv[1])
print(lock is not None, flush=True)
sys.stdin.readline()
"""


def lock_elsewhere(folder):
    """Starts a process that locks a folder, and keeps it while it runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline() == "True\n"


def test_a_lock_ends_with_its_process(tmp_path):
    process, locked = lock_elsewhere(tmp_path)
    assert locked
    assert lock_folder(tmp_path) is None
    process.kill()
    process.communicate()
    lock = lock_folder(tmp_path)
    assert lock is not None
    other, locked = lock_elsewhere(tmp_path)
    other.communicate("\n")
    assert not locked
    os.close(lock)


def test_a_staged_folder_appears_when_it_is_complete(tmp_path):
    with StagedFolder(tmp_path / "out") as folder:
        (folder / "file").write_text("text")
        assert not (tmp_path / "out").exists()
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(ValueError), StagedFolder(tmp_path / "other"):
        raise ValueError
    assert os.listdir(tmp_path) == ["out"]


def test_only_leftovers_of_dead_processes_are_removed(tmp_path):
    leftover = tmp_path / "out.partial-1"
    leftover.mkdir()
    process, locked = lock_elsewhere(leftover)
    assert locked
    with (
        pytest.raises(UserError, match="another process is writing"),
        StagedFolder(tmp_path / "out"),
    ):
        pytest.fail("It was not refused.")
    process.kill()
    process.communicate()
    with StagedFolder(tmp_path / "out"):
        assert not leftover.exists()
