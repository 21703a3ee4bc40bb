"""What must be true of the shortlists in a prepared folder.

* they are learned from the training pairs that the folder holds
* the same options and text give the same bytes
* without the option there are none, and folders from before it stay valid
* a changed or missing file is noticed
* of a corpus with too many word links, pairs of all its parts are used
"""

import dataclasses
import json

import numpy as np
import pytest

from keras_deepnmt.data import (
    CorpusOptions,
    PairStore,
    PreparedData,
    PrepareOptions,
    ShardWriter,
    Shortlists,
    prepare_corpus,
)
from keras_deepnmt.data.preparation import shortlist_learning
from keras_deepnmt.data.preparation.shortlist_learning import learn_shortlists
from keras_deepnmt.errors import UserError

ENGLISH = "dog cat bird apple tree house child table".split()
GERMAN = "Hund Katze Vogel Apfel Baum Haus Kind Tisch".split()


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Three words a line, translated one by one."""
    folder = tmp_path_factory.mktemp("text")
    words = np.random.default_rng(0).integers(0, len(ENGLISH), (120, 3))
    files = []
    for name, language in (("en", ENGLISH), ("de", GERMAN)):
        lines = [" ".join(language[w] for w in row) + "\n" for row in words]
        files.append(folder / f"train.{name}")
        files[-1].write_text("".join(lines), encoding="utf-8")
    return PrepareOptions(
        train=[CorpusOptions(*map(str, files))],
        valid_pairs=10,
        vocabulary_size=70,
        drop_duplicates=False,
        shortlist_targets=2,
    )


@pytest.fixture(scope="module")
def prepared(options, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "first"
    prepare_corpus(options, folder, progress=False)
    return folder


def without_shortlists(options):
    return dataclasses.replace(options, shortlist_targets=0)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_they_are_those_of_the_training_pairs(prepared):
    shortlists = Shortlists.load(prepared / "shortlist.npz")
    store = PairStore(prepared, "train")
    assert len(store) == 110
    expected = Shortlists.learn(
        store.read(range(len(store))), 70, 70, num_targets=2
    )
    np.testing.assert_array_equal(shortlists.by_source, expected.by_source)
    np.testing.assert_array_equal(shortlists.frequent, expected.frequent)
    assert shortlists.by_source.shape == (70, 2)


def test_the_same_input_gives_the_same_bytes(options, prepared, tmp_path):
    prepare_corpus(options, tmp_path / "second", progress=False)
    assert contents(tmp_path / "second") == contents(prepared)


def test_without_the_option_there_are_none(options, prepared, tmp_path):
    plain = tmp_path / "plain"
    manifest = prepare_corpus(
        without_shortlists(options), plain, progress=False
    )
    assert PrepareOptions(train=options.train).shortlist_targets == 0
    assert "shortlist" not in manifest
    found, expected = contents(plain), contents(prepared)
    assert expected.keys() - found.keys() == {"shortlist.npz"}
    for name in found.keys() - {"manifest.json"}:
        assert found[name] == expected[name]


def test_folders_from_before_the_option_stay_valid(options, tmp_path):
    options, folder = without_shortlists(options), tmp_path / "old"
    prepare_corpus(options, folder, progress=False)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    del manifest["options"]["shortlist_targets"]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    before = contents(folder)
    assert prepare_corpus(options, folder, progress=False) == manifest
    assert contents(folder) == before
    assert PreparedData(folder).manifest == manifest
    asked = dataclasses.replace(options, shortlist_targets=2)
    with pytest.raises(UserError, match="with shortlist_targets=0, not 2"):
        prepare_corpus(asked, folder, progress=False)
    prepare_corpus(asked, folder, overwrite=True, progress=False)
    assert (folder / "shortlist.npz").is_file()


def test_a_changed_or_missing_file_is_noticed(options, tmp_path):
    folder = tmp_path / "changed"
    prepare_corpus(options, folder, progress=False)
    file = folder / "shortlist.npz"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(UserError, match=r"shortlist\.npz was changed"):
        prepare_corpus(options, folder, progress=False)
    with pytest.raises(UserError, match=r"shortlist\.npz is not the file"):
        PreparedData(folder)
    file.unlink()
    with pytest.raises(UserError, match=r"shortlist\.npz is missing"):
        PreparedData(folder)


@pytest.mark.parametrize("targets", [-1, 1001])
def test_other_numbers_are_refused(options, targets):
    with pytest.raises(UserError, match="shortlist_targets.*from 0 to 1,000"):
        dataclasses.replace(options, shortlist_targets=targets)


@pytest.fixture
def store(tmp_path):
    """Twelve pairs of two word links each, of other words in each pair."""
    with ShardWriter(tmp_path, "train", 5) as writer:
        for row in range(12):
            writer.write([4 + row], [4 + row])
    return PairStore(tmp_path, "train")


@pytest.mark.parametrize("block_pairs", [1, 2, 1024])
@pytest.mark.parametrize(
    "max_links, used",
    [
        (24, range(12)),
        (12, range(0, 12, 2)),
        # One in three rows; then the first of the others.
        (11, [0, 1, 3, 6, 9]),
        (2, [0]),
    ],
)
def test_pairs_of_all_parts_are_used(
    store, max_links, used, block_pairs, monkeypatch
):
    monkeypatch.setattr(shortlist_learning, "_BLOCK_PAIRS", block_pairs)
    shortlists = learn_shortlists(store, 16, 16, 1, max_links)
    assert np.flatnonzero(shortlists.by_source[4:, 0]).tolist() == list(used)
    # All pairs are counted, each once.
    assert shortlists.frequent.tolist() == list(range(4, 16))


def test_pairs_that_are_all_too_long_are_refused(store):
    with pytest.raises(UserError, match="at most 1 word links.*with 2 and"):
        learn_shortlists(store, 16, 16, 1, max_links=1)
