"""The cache of compilations that all commands share, in the user's folder.

* the environment says where it is, or that there is none
* a folder that cannot be written is not an error
* it is made for this user alone; one to which others can write is not used
* processes that use it at once do not delete each other's files
* settings of the environment stay, and are restored
* the folder stays below its limit; entries that this machine cannot use are
  deleted first, then those that were not used for longest
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from keras_deepnmt.files import lock_folder
from keras_deepnmt.xla import cache as compilation_cache
from keras_deepnmt.xla.cache import (
    USER_VARIABLE,
    ask_for_user_cache,
    cache_dir,
    describe_unused_cache,
    is_whole,
    open_user_cache,
    user_cache_asked_for,
    user_cache_dir,
)

FLAGS = "TF_XLA_FLAGS"
# Field 1 is text.
ENTRY = b"\x0a\x03key"
# Field 2 is a number, field 3 holds 300 bytes.
LONG_ENTRY = ENTRY + b"\x10\x96\x01\x1a\xac\x02" + bytes(300)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of this backend in a new user's cache."""
    monkeypatch.setenv(USER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv(FLAGS, "")
    monkeypatch.setattr(compilation_cache, "_locks", {})
    yield cache_dir(tmp_path / "cache", "tensorflow")
    for lock in compilation_cache._locks.values():
        os.close(lock)


@pytest.mark.parametrize(
    "variables, folder",
    [
        ({USER_VARIABLE: "here"}, "here"),
        ({USER_VARIABLE: "off"}, None),
        ({USER_VARIABLE: "0"}, None),
        ({USER_VARIABLE: ""}, None),
        ({"XDG_CACHE_HOME": "/x"}, "/x/keras_deepnmt"),
        ({"XDG_CACHE_HOME": "relative"}, "/me/.cache/keras_deepnmt"),
        ({}, "/me/.cache/keras_deepnmt"),
    ],
)
def test_the_environment_chooses_the_folder(monkeypatch, variables, folder):
    for name in (USER_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/me"} | variables).items():
        monkeypatch.setenv(name, value)
    assert user_cache_dir() == (folder and Path(folder))


def test_the_folder_is_made_and_asked_for(cache):
    ask_for_user_cache()
    assert cache.is_dir()
    assert f'="{cache}"' in os.environ[FLAGS]


def test_no_folder_no_cache(cache, monkeypatch):
    monkeypatch.setenv(USER_VARIABLE, "off")
    ask_for_user_cache()
    open_user_cache("jax")
    assert os.environ[FLAGS] == ""


def test_a_folder_that_cannot_be_written_is_not_used(cache, monkeypatch):
    cache.mkdir(parents=True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    ask_for_user_cache()
    assert os.environ[FLAGS] == ""
    monkeypatch.undo()


def test_a_file_in_the_place_of_the_folder_is_no_error(cache, tmp_path):
    (tmp_path / "cache").write_text("")
    ask_for_user_cache()
    open_user_cache("jax")
    assert os.environ[FLAGS] == ""


def test_a_process_alone_tidies(cache, monkeypatch):
    cache.mkdir(parents=True)
    old, new = cache / "old.pb", cache / "new.pb"
    for age, file in enumerate((new, old)):
        file.write_bytes(ENTRY)
        # The old one was written later, but not used since.
        os.utime(file, (9 - age, age))
    (cache / "left.pb.1.tmp").write_bytes(ENTRY)
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", len(ENTRY))
    ask_for_user_cache()
    assert [file.name for file in cache.iterdir()] == ["new.pb"]


def test_others_who_use_the_cache_keep_their_files(cache, monkeypatch):
    cache.mkdir(parents=True)
    (cache / "whole.pb").write_bytes(ENTRY)
    (cache / "cut.pb").write_bytes(ENTRY[:-1])
    (cache / "being_written.pb.1.tmp").write_bytes(ENTRY)
    (cache / "of_last_week.pb").write_bytes(ENTRY)
    last_week = time.time() - 7 * 24 * 60 * 60
    os.utime(cache / "of_last_week.pb", (last_week, last_week))
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 0)
    other = lock_folder(cache.parent, shared=True)
    ask_for_user_cache()
    os.close(other)
    names = {file.name for file in cache.iterdir()}
    assert names == {"whole.pb", "being_written.pb.1.tmp"}
    assert str(cache) in os.environ[FLAGS]
    # This process uses the cache until it ends.
    assert lock_folder(cache.parent) is None


def test_a_cache_that_another_process_tidies_is_waited_for(cache, monkeypatch):
    cache.mkdir(parents=True)
    other = lock_folder(cache.parent)
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    ask_for_user_cache()
    assert os.environ[FLAGS] == "" and len(waits) == 20
    monkeypatch.setattr(time, "sleep", lambda seconds: os.close(other))
    ask_for_user_cache()
    assert str(cache) in os.environ[FLAGS]


def test_other_flags_of_xla_have_another_folder(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert cache_dir(tmp_path / "cache", "tensorflow") != cache


def test_a_cut_entry_is_no_whole_one(tmp_path):
    file = tmp_path / "entry.pb"
    # Between two fields a cut cannot be seen; TensorFlow's key comes first,
    # its code last.
    for length in (0, 1, 2, 4, 6, 9, 10, 11, len(LONG_ENTRY) - 1):
        file.write_bytes(LONG_ENTRY[:length])
        assert not is_whole(file), length
    file.write_bytes(LONG_ENTRY)
    assert is_whole(file)


def test_flags_of_the_environment_stay_and_come_back(monkeypatch, cache):
    monkeypatch.setenv(FLAGS, "--tf_xla_clustering_debug")
    with user_cache_asked_for(wanted=False):
        assert os.environ[FLAGS] == "--tf_xla_clustering_debug"
    assert not cache.parent.exists()
    with user_cache_asked_for(wanted=True):
        flags = os.environ[FLAGS]
        assert flags.startswith("--tf_xla_clustering_debug ")
        assert f'="{cache}"' in flags
        with user_cache_asked_for(wanted=True):
            assert os.environ[FLAGS] == flags
    assert os.environ[FLAGS] == "--tf_xla_clustering_debug"
    own = "--tf_xla_persistent_cache_directory=mine"
    monkeypatch.setenv(FLAGS, own)
    with user_cache_asked_for(wanted=True):
        assert os.environ[FLAGS] == own
        assert describe_unused_cache("tensorflow") is None
    monkeypatch.delenv(FLAGS)
    with user_cache_asked_for(wanted=True):
        pass
    assert FLAGS not in os.environ


def test_on_a_full_disk_nothing_is_asked_for(cache, monkeypatch, tmp_path):
    full = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: full)
    with user_cache_asked_for(wanted=True):
        assert os.environ[FLAGS] == ""
        assert "no room" in describe_unused_cache("tensorflow")


def test_a_folder_that_cannot_be_written_is_told(cache, monkeypatch):
    cache.parents[1].write_text("")
    with user_cache_asked_for(wanted=True):
        assert os.environ[FLAGS] == ""
        assert "cannot be written" in describe_unused_cache("tensorflow")
    monkeypatch.setenv(USER_VARIABLE, "off")
    assert describe_unused_cache("tensorflow") is None


def test_a_full_cache_loses_other_machines_entries_then_the_oldest(
    cache, monkeypatch
):
    other = cache.parent / "tensorflow-1.0-elsewhere"
    files = [cache / "old.pb", other / "new.pb", cache / "middle.pb"]
    for age, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(LONG_ENTRY)
        os.utime(file, (age, age))
    for most, expected in (
        (2, {"old.pb", "middle.pb"}),
        (1.9, {"middle.pb"}),
    ):
        monkeypatch.setattr(
            compilation_cache, "MOST_BYTES", most * len(LONG_ENTRY)
        )
        ask_for_user_cache()
        kept = cache.parent.rglob("*.pb")
        assert {f.name for f in kept} == expected
        os.close(compilation_cache._locks.popitem()[1])


def told(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if "not kept" in record.getMessage()
    ]


def test_the_folder_is_made_for_this_user_alone(cache):
    before = os.umask(0)
    try:
        ask_for_user_cache()
    finally:
        os.umask(before)
    for folder in (cache, cache.parent, cache.parents[1]):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(
    cache, level, mode, caplog, monkeypatch
):
    monkeypatch.setattr(compilation_cache, "_told", set())
    cache.mkdir(parents=True)
    for folder in (cache, *cache.parents[:2]):
        folder.chmod(0o700)
    folder = (cache, *cache.parents[:2])[level]
    folder.chmod(mode)
    (cache / "planted.pb").write_bytes(ENTRY)
    for _ in range(2):
        ask_for_user_cache()
        open_user_cache("jax")
    assert os.environ[FLAGS] == ""
    # Said once, with the folder.
    (said,) = told(caplog)
    assert f"other users can write to {folder}" in said
    assert describe_unused_cache("tensorflow") is None
    folder.chmod(0o700)
    ask_for_user_cache()
    assert str(cache) in os.environ[FLAGS]


def test_a_folder_of_another_user_is_not_used(cache, caplog, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_told", set())
    ask_for_user_cache()
    monkeypatch.setenv(FLAGS, "")
    me = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: me + 1)
    # Of a process that has not asked before.
    assert "another user" in describe_unused_cache("tensorflow")
    ask_for_user_cache()
    assert os.environ[FLAGS] == ""
    (said,) = told(caplog)
    assert "belongs to another user" in said


def test_an_entry_that_is_no_file_of_this_user_is_removed(cache, tmp_path):
    cache.mkdir(parents=True, mode=0o700)
    for folder in cache.parents[:2]:
        folder.chmod(0o700)
    (tmp_path / "elsewhere.pb").write_bytes(ENTRY)
    (cache / "link.pb").symlink_to(tmp_path / "elsewhere.pb")
    (cache / "mine.pb").write_bytes(ENTRY)
    ask_for_user_cache()
    assert [file.name for file in cache.iterdir()] == ["mine.pb"]
    assert (tmp_path / "elsewhere.pb").read_bytes() == ENTRY
