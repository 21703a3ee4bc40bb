"""What must be true of PreparedData.

* It opens what `prepare_corpus` wrote: ids, texts, tokenizers, weights.
* It refuses an unfinished, foreign, changed or incomplete folder in one line
  that says what to do: every file has its size and hash in the manifest.
* It opens folders of earlier versions, which list fewer files.
"""

import json
import shutil

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.pair_store import lengths_path, shard_files
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.preparation.shard_writer import ShardWriter
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()


def write_text(directory, name, pairs, seed):
    random = np.random.default_rng(seed)
    files = []
    for side, reverse in (("en", False), ("de", True)):
        random = np.random.default_rng(seed)
        lines = []
        for _ in range(pairs):
            words = random.choice(WORDS, random.integers(3, 9)).tolist()
            lines.append(" ".join(words[::-1] if reverse else words) + "\n")
        files.append(directory / f"{name}.{side}")
        files[-1].write_text("".join(lines), "utf-8")
    return str(files[0]), str(files[1])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    directory = tmp_path_factory.mktemp("text")
    options = PrepareOptions(
        train=[
            CorpusOptions(*write_text(directory, "one", 113, 1)),
            CorpusOptions(*write_text(directory, "two", 53, 2), weight=2.0),
        ],
        valid=CorpusOptions(*write_text(directory, "valid", 17, 3)),
        vocabulary_size=40,
    )
    prepare_corpus(options, directory / "prepared", progress=False)
    return directory / "prepared"


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "copy")


@pytest.fixture
def earlier(copy):
    """A folder of an earlier version: no table of files."""
    return change_manifest(copy, lambda manifest: manifest.pop("files"))


def change_manifest(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def test_every_file_that_is_cut_or_flipped_is_named(prepared, tmp_path):
    names = {
        path.relative_to(prepared).as_posix()
        for path in prepared.rglob("*")
        if path.is_file()
    }
    names.remove("manifest.json")
    assert len(names) == 8
    for number, name in enumerate(sorted(names)):
        copy = shutil.copytree(prepared, tmp_path / str(number))
        content = bytearray((copy / name).read_bytes())
        (copy / name).write_bytes(content[:-1])
        with pytest.raises(UserError, match=f"{name} is not the file that man"):
            PreparedData(copy)
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
        # The records of a shard have checksums of their own.
        verify = name.endswith("array_record")
        with pytest.raises(UserError, match=f"{name} is not the file that man"):
            PreparedData(copy, verify=verify)
        (copy / name).unlink()
        with pytest.raises(UserError, match=f"{name} is missing"):
            PreparedData(copy)


def test_large_files_are_compared_by_size_unless_asked(copy, monkeypatch):
    monkeypatch.setattr("keras_deepnmt.file_tables._MOST_HASHED_BYTES", 0)
    file = lengths_path(copy, "train")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    PreparedData(copy)
    with pytest.raises(UserError, match="train.lengths.npy is not the file"):
        PreparedData(copy, verify=True)
    file.write_bytes(content[:-2])
    with pytest.raises(UserError, match="train.lengths.npy is not the file"):
        PreparedData(copy)


@pytest.mark.parametrize("name", ["../valid.de", "/etc/hostname", "a/../../b"])
def test_a_table_that_names_a_file_outside_the_folder_is_refused(copy, name):
    row = {"bytes": 1, "sha256": "0" * 64}
    change_manifest(
        copy, lambda manifest: manifest["files"].update({name: row})
    )
    with pytest.raises(UserError, match=f"one outside it: {name}"):
        PreparedData(copy)


@pytest.mark.parametrize("row", [7, {"bytes": 1}, {"bytes": "1", "sha256": ""}])
def test_a_table_of_another_form_is_refused(copy, row):
    change_manifest(copy, lambda manifest: manifest["files"].update(a=row))
    with pytest.raises(UserError, match="has no size and SHA-256 of a"):
        PreparedData(copy)


def test_lengths_that_were_cut_are_refused_in_an_earlier_folder(earlier):
    assert len(PreparedData(earlier, verify=True).store("train")) == 162
    file = lengths_path(earlier, "train")
    whole = file.read_bytes()
    for content in (whole[:-3], whole[:40], b""):
        file.write_bytes(content)
        with pytest.raises(UserError, match="train.lengths.npy: damaged") as e:
            PreparedData(earlier).store("train")
        assert "\n" not in str(e.value)
    np.save(file, np.zeros(162, "int64"))
    with pytest.raises(UserError, match="two uint16 numbers a pair"):
        PreparedData(earlier).store("train")


def test_opens_what_was_prepared(prepared):
    data = PreparedData(prepared, verify=True)
    assert set(data.splits) == {"train", "valid"}
    sources, references = data.texts("valid")
    pairs = data.store("valid").read(range(len(sources)))
    for (source, target), text, reference in zip(
        pairs, sources, references, strict=True
    ):
        assert data.source_tokenizer.decode([source]) == [text]
        assert data.target_tokenizer.decode([target]) == [reference]


def test_weights_are_one_a_training_row(prepared):
    data = PreparedData(prepared)
    lengths = data.store("train").lengths
    batch_shapes = choose_batch_shapes(lengths, 211, 3)
    plan = BatchPlan(lengths, batch_shapes, weights=data.weights)
    assert set(data.weights.tolist()) == {1.0, 2.0}
    assert sum(plan.rows_per_shape) == data.weights.sum()


def test_refuses_a_folder_without_manifest(copy):
    (copy / "manifest.json").unlink()
    with pytest.raises(UserError, match="Run `deepnmt prepare` first"):
        PreparedData(copy)
    with pytest.raises(UserError, match="Run `deepnmt prepare` first"):
        PreparedData(copy / "nowhere")


def test_refuses_another_format(copy):
    manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
    manifest["format"] = 2
    (copy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(UserError, match="format must be 1. Received: 2"):
        PreparedData(copy)


def test_refuses_another_tokenizer(copy):
    file = copy / "tokenizer" / "source.model"
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(UserError, match="source.model is not the file"):
        PreparedData(copy)
    file.unlink()
    with pytest.raises(UserError, match="source.model is missing"):
        PreparedData(copy)


def test_refuses_a_missing_shard(copy):
    shard_files(copy, "train")[0].unlink()
    with pytest.raises(UserError, match="train-00000-of-00001.*is missing"):
        PreparedData(copy)


def test_a_changed_shard_is_found_when_asked_for(copy):
    file = shard_files(copy, "train")[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 255
    file.write_bytes(content)
    PreparedData(copy)
    with pytest.raises(
        UserError, match="train-00000-of-00001.*is not the file"
    ):
        PreparedData(copy, verify=True)


def test_refuses_shards_of_another_run(earlier):
    with ShardWriter(earlier, "train") as writer:
        writer.write([5], [6])
    with pytest.raises(UserError, match="lists 162 pairs.*hold 1"):
        PreparedData(earlier).store("train")


def test_refuses_texts_of_another_number_of_lines(copy):
    def change(manifest):
        manifest["splits"]["valid"]["pairs"] = 16

    with pytest.raises(UserError, match="must have 16 lines.*17 and 17"):
        PreparedData(change_manifest(copy, change)).texts("valid")


def test_refuses_references_that_are_edited_after_it_was_opened(copy):
    data = PreparedData(copy)
    file = copy / "valid.target.txt"
    file.write_text(file.read_text("utf-8").replace("alpha", "omega"), "utf-8")
    with pytest.raises(UserError, match="valid.target.txt is not the file"):
        data.texts("valid")


def test_names_the_splits_there_are(prepared):
    data = PreparedData(prepared)
    with pytest.raises(UserError, match="no split `test`. It has: "):
        data.store("test")
    with pytest.raises(UserError, match="no text of `train`"):
        data.texts("train")
