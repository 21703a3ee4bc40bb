"""The cache of compilations that all commands share, in the user's folder.

* the environment says where it is, or that there is none
* a folder that cannot be written is no error
* processes that use it at once do not delete each other's files
* what was not used for longest goes first
"""

import os
import time
from pathlib import Path

import pytest

from keras_deepnmt.files import lock_folder
from keras_deepnmt.xla import cache as compilation_cache
from keras_deepnmt.xla.cache import (
    USER_VARIABLE,
    ask_for_user_cache,
    cache_dir,
    open_user_cache,
    user_cache_dir,
)

FLAGS = "TF_XLA_FLAGS"
# Field 1 is text.
ENTRY = b"\x0a\x03key"


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
