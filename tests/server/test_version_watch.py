"""What is done about versions of exports that cannot be loaded."""

from types import SimpleNamespace

import pytest

from keras_deepnmt.server import version_watch
from keras_deepnmt.server.version_watch import VersionWatch


class Model:
    """Loads a version whose file is whole."""

    name = "mine"
    is_ready = True

    def __init__(self, folder):
        self.folder = folder
        self.current = SimpleNamespace(number=1)
        self.tried = []

    def replace(self, number):
        self.tried.append(number)
        if (self.folder / str(number) / "model").read_text() != "whole":
            raise ValueError("damaged")
        self.current = SimpleNamespace(number=number)


@pytest.fixture
def events(monkeypatch):
    found = []
    monkeypatch.setattr(
        version_watch,
        "log_event",
        lambda event, *level, **fields: found.append(
            (event, fields["version"])
        ),
    )
    return found


def test_a_broken_version_is_tried_again_when_it_has_changed(tmp_path, events):
    (tmp_path / "2").mkdir()
    file = tmp_path / "2" / "model"
    file.write_text("wh")
    model = Model(tmp_path)
    watch = VersionWatch({})
    for _ in range(3):
        watch._look(model, tmp_path)
    assert model.tried == [2] and events == [("version_failed", 2)]
    file.write_text("whole")
    for _ in range(3):
        watch._look(model, tmp_path)
    assert model.tried == [2, 2] and events[1:] == [("version", 2)]


def test_a_folder_that_cannot_be_read_does_not_end_the_watch(
    tmp_path, events, monkeypatch
):
    looks = iter([OSError("stale file handle"), OSError("stale file handle")])
    found = version_watch.numbered_versions

    def numbered_versions(folder):
        if error := next(looks, None):
            raise error
        return found(folder)

    monkeypatch.setattr(version_watch, "numbered_versions", numbered_versions)
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "model").write_text("whole")
    model = Model(tmp_path)
    watch = VersionWatch({})
    for _ in range(3):
        watch._look(model, tmp_path)
    assert events == [("version_failed", None), ("version", 2)]
