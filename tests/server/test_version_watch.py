"""What is done about versions of exports that cannot be loaded."""

import json
from types import SimpleNamespace

import pytest
from toy_server import SECONDS, Capitals

from keras_deepnmt.commands import serve
from keras_deepnmt.data.directions import Direction
from keras_deepnmt.server import version_watch
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.version_watch import VersionWatch
from keras_deepnmt.serving.golden import EXPORT_FILE


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


def test_languages_that_no_export_has_recorded_need_no_tag(
    tmp_path, monkeypatch
):
    """Such as another code of the same language."""
    monkeypatch.setattr(serve, "_engine", lambda *_: Capitals())
    described = {"directions": [Direction("en", "no", None)._asdict()]}
    file = tmp_path / "1" / EXPORT_FILE
    file.parent.mkdir(parents=True)
    (tmp_path / "1" / "saved_model.pb").touch()
    file.write_text(json.dumps(described))
    found = serve._directions({"mine": tmp_path}, ["en-nb"])
    model = serve._model(
        *("mine", tmp_path, found["mine"]),
        SimpleNamespace(wait_ms=1),
        RequestLimits(),
        Metrics(),
    )
    assert model.current.number == 1
    model.current.queue.close()


@pytest.mark.parametrize("language", [None, "en-de"])
def test_a_version_that_needs_other_tags_is_refused(
    tmp_path, monkeypatch, language
):
    """The server would put the tags of the first version before its texts."""
    events = []
    monkeypatch.setattr(
        version_watch,
        "log_event",
        lambda event, *level, **fields: events.append((event, fields)),
    )
    monkeypatch.setattr(serve, "_engine", lambda *_: Capitals())

    def export(number, *directions):
        file = tmp_path / str(number) / EXPORT_FILE
        file.parent.mkdir(parents=True)
        (tmp_path / str(number) / "saved_model.pb").touch()
        described = [direction._asdict() for direction in directions]
        file.write_text(json.dumps({"directions": described}))

    tagged = Direction("en", "de", "<2de>")
    export(1, tagged)
    found = serve._directions({"mine": tmp_path}, language and [language])
    model = serve._model(
        *("mine", tmp_path, found["mine"]),
        SimpleNamespace(wait_ms=1),
        RequestLimits(),
        Metrics(),
    )
    model.current.queue.ready.result(SECONDS)
    watch = VersionWatch({})
    # With `--target-language de`, so that the graph adds the tag.
    export(2, Direction("en", "de", None))
    for _ in range(2):
        watch._look(model, tmp_path)
    [(event, fields)] = events
    assert event == "version_failed" and fields["version"] == 2
    assert "from en to de, <2de>. Received: no tag. Start" in fields["reason"]
    assert model.current.number == 1
    export(3, Direction("de", "en", "<2en>"), tagged)
    watch._look(model, tmp_path)
    # Another tag of the same languages changes nothing for those who use one.
    export(4, Direction("en", "de", "<law>"), tagged)
    watch._look(model, tmp_path)
    assert [event for event, _ in events[1:]] == ["version"] * 2
    assert model.current.number == 4
    model.current.queue.close()
