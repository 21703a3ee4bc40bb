"""What must be true of the embedded corpus.

* each "der" of the files has its label;
* the files' splits do not overlap, and appear only when complete;
* more pairs than there are, or fewer than none, are refused.
"""

import json

import pytest

from keras_deepnmt.data import demo
from keras_deepnmt.errors import UserError

DER_FUNCTIONS = {
    "nominative_masculine",
    "dative_feminine",
    "genitive_feminine",
    "genitive_plural",
    "relative_nominative_masculine",
    "relative_dative_feminine",
}


def read(paths, name):
    return paths[name].read_text("utf-8").splitlines()


def test_files_agree_and_splits_do_not_overlap(tmp_path):
    paths = demo.write_demo_corpus(tmp_path / "new", 997, 101, 103)
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(paths)
    sizes = {"train": 997, "valid": 101, "test": 103}
    for extension in ("de", "en"):
        lines = []
        for split, size in sizes.items():
            part = read(paths, f"{split}.{extension}")
            assert len(part) == size
            lines += part
        assert len(set(lines)) == sum(sizes.values())
    found = set()
    for line, roles in zip(
        read(paths, "train.de"), read(paths, "train.roles.jsonl"), strict=True
    ):
        for role in json.loads(roles):
            token = line.split()[role["token_index"]]
            assert token.strip(".,?").lower() == "der"
            found.add(role["function"])
    assert found == DER_FUNCTIONS


def test_same_sizes_same_bytes_and_held_out_ignores_training_size(tmp_path):
    first = demo.write_demo_corpus(tmp_path / "a", 211, 11, 13)
    again = demo.write_demo_corpus(tmp_path / "b", 211, 11, 13)
    larger = demo.write_demo_corpus(tmp_path / "c", 307, 11, 13)
    for name, path in first.items():
        assert path.read_bytes() == again[name].read_bytes()
        if not name.startswith("train"):
            assert path.read_bytes() == larger[name].read_bytes()


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        demo.write_demo_corpus(tmp_path, 3, 2, 2)
    assert list(tmp_path.iterdir()) == []


def test_refuses_impossible_sizes_and_a_file_as_folder(tmp_path):
    with pytest.raises(ValueError, match="`num_pairs` must not be negative"):
        demo.demo_pairs(-1)
    with pytest.raises(ValueError, match="num_valid=-2"):
        demo.write_demo_corpus(tmp_path, 3, -2, 2)
    with pytest.raises(ValueError, match="`num_pairs` must be at most 41000"):
        demo.demo_pairs(41_001)
    with pytest.raises(ValueError, match="`num_train .*=41003"):
        demo.write_demo_corpus(tmp_path, 41_000, 1, 2)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="this is a file"):
        demo.write_demo_corpus(tmp_path / "file", 3, 2, 2)


def test_a_shorter_list_is_the_beginning_of_a_longer_one():
    assert demo.demo_pairs(0) == []
    assert demo.demo_pairs(101) == demo.demo_pairs(103)[:101]
    assert len(demo.demo_pairs(41_000)) == 41_000


def test_pairs_cannot_be_changed():
    with pytest.raises(AttributeError):
        demo.demo_pairs(1)[0].source = "x"
