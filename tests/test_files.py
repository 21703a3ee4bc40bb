"""What must be true of hashing, locking and writing files.

* a file is replaced as a whole, or stays as it was and nothing else is left
* a lock keeps other processes out, and ends with its process
* a lock of a file waits for the process that has it, and leaves nothing
* a staged folder appears when it is complete; leftovers of dead processes are
  removed, those of running ones refused
* a replaced folder is never lost, wherever its process was killed
* hashes are SHA-256 of the bytes
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    StagedFolder,
    atomic_file,
    bytes_sha256,
    file_lock,
    file_sha256,
    lines_sha256,
    lock_folder,
    recover_folder,
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


def test_several_processes_may_share_a_lock(tmp_path):
    first = lock_folder(tmp_path, shared=True)
    second = lock_folder(tmp_path, shared=True)
    assert first is not None and second is not None
    assert lock_folder(tmp_path) is None
    os.close(first)
    os.close(second)
    lock = lock_folder(tmp_path)
    assert lock_folder(tmp_path, shared=True) is None
    os.close(lock)


def test_changes_of_a_file_by_many_are_made_one_after_another(tmp_path):
    file = tmp_path / "count"
    write_json(file, 0)

    def count():
        for _ in range(20):
            with file_lock(file):
                number = json.loads(file.read_text())
                write_json(file, number + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(file.read_text()) == 80
    with pytest.raises(KeyboardInterrupt), file_lock(file):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["count"]


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


REPLACE = """
import os, signal, sys
from keras_deepnmt.files import StagedFolder
rename, renames = os.rename, []
def rename_and_die(*paths):
    if len(renames) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    renames.append(paths)
    rename(*paths)
os.rename = rename_and_die
with StagedFolder(sys.argv[1], replace=True) as folder:
    (folder / "file").write_text("new")
"""


def killed_while_replacing(folder, renames):
    """Replaces a folder in a process that is killed after so many renames."""
    command = [sys.executable, "-c", REPLACE, str(folder), str(renames)]
    assert subprocess.run(command).returncode == -signal.SIGKILL


@pytest.fixture
def output(tmp_path):
    with StagedFolder(tmp_path / "out") as folder:
        (folder / "file").write_text("old")
    return tmp_path / "out"


@pytest.mark.parametrize("renames", [0, 1])
def test_a_kill_while_a_folder_is_replaced_costs_nothing(output, renames):
    killed_while_replacing(output, renames)
    assert output.exists() == (renames == 0)
    recover_folder(output)
    assert (output / "file").read_text() == "old"
    with StagedFolder(output, replace=True) as folder:
        (folder / "file").write_text("newer")
    assert (output / "file").read_text() == "newer"
    assert os.listdir(output.parent) == ["out"]


def test_the_same_process_number_again_changes_nothing(output):
    aside = output.with_name(f"out.replaced-{os.getpid()}")
    os.rename(output, aside)
    output.mkdir()  # empty: the only copy is the one set aside
    with (
        pytest.raises(KeyboardInterrupt),
        StagedFolder(output, replace=True),
    ):
        raise KeyboardInterrupt
    assert (output / "file").read_text() == "old"
    aside.mkdir()
    (aside / "file").write_text("older")
    with StagedFolder(output, replace=True) as folder:
        (folder / "file").write_text("new")
    assert (output / "file").read_text() == "new"
    assert os.listdir(output.parent) == ["out"]


def test_a_folder_that_is_just_being_replaced_is_not_put_back(output):
    partial = output.with_name("out.partial-1")
    os.rename(output, output.with_name("out.replaced-1"))
    partial.mkdir()
    process, locked = lock_elsewhere(partial)
    assert locked
    with pytest.raises(UserError, match="another process is writing"):
        recover_folder(output)
    process.communicate("\n")
    assert not output.exists()


def test_a_rename_that_fails_puts_the_old_folder_back(output, monkeypatch):
    rename = os.rename

    def fail(source, target):
        if "partial" in str(source):
            raise OSError("no")
        rename(source, target)

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(OSError, match="no"), StagedFolder(output, replace=True):
        pass
    assert (output / "file").read_text() == "old"
    assert os.listdir(output.parent) == ["out"]


def test_a_folder_with_content_is_not_written_over(output):
    with pytest.raises(UserError, match="exists already"), StagedFolder(output):
        pytest.fail("It was not refused.")
