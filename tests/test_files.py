"""What must be true of hashing, locking and writing files.

* a file is replaced as a whole, or stays as it was and nothing else is left,
  whenever Ctrl-C comes
* it keeps its mode, and nobody else sees or plants anything meanwhile
* only what this package named, and dead processes left, is deleted
* a lock keeps other processes out, and ends with its process
* a lock of a file waits for the process that has it, and leaves nothing
* a staged folder appears when it is complete; leftovers of dead processes are
  removed, those of running ones refused
* a replaced folder is never lost, wherever its process was killed
* hashes are SHA-256 of the bytes
"""

import errno
import hashlib
import json
import operator
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from keras_deepnmt import files
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import (
    StagedFolder,
    atomic_file,
    bytes_sha256,
    copy_folder,
    delete_folder,
    file_lock,
    file_sha256,
    lines_sha256,
    lock_folder,
    recover_folder,
    remove_leftovers,
    working_folder,
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


def leftover(path, content=""):
    """What a process leaves that is killed while it writes `path`."""
    working = path.with_name(f".{path.name}.0123456789abcdef.partial")
    working.mkdir()
    (working / path.name).write_text(content)
    return working


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_keeps_the_mode_that_its_owner_gave_it(tmp_path):
    file = tmp_path / "file"
    write_text(file, "old")
    expected = tmp_path / "expected"
    expected.write_text("as every new file")
    assert mode_of(file) == mode_of(expected)
    for mode in (0o600, 0o664):
        file.chmod(mode)
        write_text(file, "new")
        assert mode_of(file) == mode


def test_nobody_else_can_open_a_file_while_it_is_written(tmp_path):
    with atomic_file(tmp_path / "file") as temporary:
        assert mode_of(temporary.parent) == 0o700
        # With the ending by which NumPy and Keras know their formats.
        assert temporary.name == "file"
        temporary.touch()


def test_a_link_planted_under_a_temporary_name_is_not_followed(
    tmp_path, monkeypatch
):
    own = tmp_path / "own"
    own.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    with working_folder(tmp_path / "file") as folder:
        name = folder.name
    (tmp_path / name).symlink_to(own)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "file", "other")
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    remove_leftovers(tmp_path)
    assert own.read_text() == "mine"


def test_only_what_dead_processes_left_is_removed(tmp_path):
    users = {
        "file.partial-20261127": "a folder of the user",
        ".file.partial": "another one",
        ".file.17.partial": "another one",
        "file.replaced-2": "another one",
    }
    for name, content in users.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text(content)
    dead = leftover(tmp_path / "file", "half")
    other = leftover(tmp_path / "other", "half")
    with working_folder(tmp_path / "file") as living:
        write_text(tmp_path / "file", "new")
        assert living.is_dir() and not dead.exists() and not other.exists()
        assert not (tmp_path / "other").exists()
        with StagedFolder(tmp_path / "out"):
            pass
    assert set(os.listdir(tmp_path)) == {*users, "file", "out"}
    for name, content in users.items():
        assert (tmp_path / name / "notes").read_text() == content


def test_a_folder_is_deleted_at_once_or_later(tmp_path, monkeypatch):
    folder = tmp_path / "old"
    for _ in range(2):
        folder.mkdir()
        (folder / "file").write_text("text")
        with monkeypatch.context() as patch:
            patch.setattr("shutil.rmtree", lambda path, **_: None)
            delete_folder(folder)
        assert not folder.exists()
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "file"
    write_text(file, "old")
    with pytest.raises(KeyboardInterrupt), atomic_file(file) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["os.mkdir", "lock_folder"])
def test_ctrl_c_at_the_beginning_leaves_nothing(tmp_path, monkeypatch, name):
    function = operator.attrgetter(name)(files)

    def interrupted(*arguments):
        function(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"keras_deepnmt.files.{name}", interrupted)
        for writing in (
            atomic_file(tmp_path / "a.txt"),
            StagedFolder(tmp_path / "prepared"),
        ):
            with pytest.raises(KeyboardInterrupt), writing:
                pass
    assert list(tmp_path.iterdir()) == []


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
    left = leftover(tmp_path / "out")
    process, locked = lock_elsewhere(left)
    assert locked
    with (
        pytest.raises(UserError, match="another process is writing"),
        StagedFolder(tmp_path / "out"),
    ):
        pytest.fail("It was not refused.")
    process.kill()
    process.communicate()
    with StagedFolder(tmp_path / "out"):
        assert not left.exists()


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


def set_aside(output):
    """Leaves a folder as a process that is killed between two renames does."""
    working = leftover(output)
    (working / output.name).unlink()
    os.rename(output, working / "out.replaced")
    return working


def test_the_only_copy_replaces_an_empty_folder(output):
    set_aside(output)
    output.mkdir()
    with (
        pytest.raises(KeyboardInterrupt),
        StagedFolder(output, replace=True),
    ):
        raise KeyboardInterrupt
    assert (output / "file").read_text() == "old"
    assert os.listdir(output.parent) == ["out"]


def test_a_folder_that_was_made_since_is_not_lost_either(output):
    set_aside(output)
    output.mkdir()
    (output / "file").write_text("newer")
    recover_folder(output)
    remove_leftovers(output.parent)
    assert (output / "file").read_text() == "newer"


def test_a_folder_that_is_just_being_replaced_is_not_put_back(output):
    process, locked = lock_elsewhere(set_aside(output))
    assert locked
    with pytest.raises(UserError, match="another process is writing"):
        recover_folder(output)
    process.communicate("\n")
    assert not output.exists()


def test_a_folder_that_cannot_be_put_back_is_named(output, monkeypatch):
    working = set_aside(output)

    def refuse(*paths):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.rename", refuse)
    with pytest.raises(UserError) as info:
        recover_folder(output)
    assert f"{working / 'out.replaced'}, which could" in str(info.value)
    assert str(info.value).endswith(f"Rename it to {output}.")
    assert (working / "out.replaced" / "file").read_text() == "old"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_rename_that_fails_puts_the_old_folder_back(
    output, monkeypatch, error
):
    rename = os.rename

    def fail(source, target):
        if str(target) == str(output) and "replaced" not in str(source):
            raise error("no")
        rename(source, target)

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(error, match="no"), StagedFolder(output, replace=True):
        pass
    assert (output / "file").read_text() == "old"
    assert os.listdir(output.parent) == ["out"]


def test_a_folder_keeps_its_modes_when_it_is_replaced(output):
    output.chmod(0o700)
    (output / "file").chmod(0o600)
    with StagedFolder(output, replace=True) as folder:
        (folder / "file").write_text("new")
        (folder / "other").write_text("new")
    assert mode_of(output) == 0o700
    assert mode_of(output / "file") == 0o600
    assert (output / "other").exists()


def test_a_folder_with_content_is_not_written_over(output):
    with pytest.raises(UserError, match="exists already"), StagedFolder(output):
        pytest.fail("It was not refused.")


def test_a_disk_that_is_full_while_a_folder_is_copied_is_said_so(
    tmp_path, monkeypatch
):
    (tmp_path / "old" / "inner").mkdir(parents=True)
    (tmp_path / "old" / "inner" / "file").write_text("text")
    with StagedFolder(tmp_path / "whole") as folder:
        copy_folder(tmp_path / "old", folder / "copy")
    copied = tmp_path / "whole" / "copy" / "inner" / "file"
    assert copied.read_text() == "text"

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copy2", full)
    with (
        pytest.raises(UserError, match="could not be written .No space left"),
        StagedFolder(tmp_path / "new") as folder,
    ):
        copy_folder(tmp_path / "old", folder / "copy")
    assert not (tmp_path / "new").exists()
