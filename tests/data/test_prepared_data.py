"""What must be true of PreparedData.

* It opens what `prepare_corpus` wrote: ids, texts, tokenizers, weights.
* It refuses an unfinished, foreign, changed or incomplete folder in one line
  that says what to do.
"""

import json
import shutil

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.manifest import (
    damaged_files,
    read_manifest,
)
from keras_deepnmt.data.pair_store import shard_files
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
    with pytest.raises(UserError, match="source.model: No such file"):
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


def test_refuses_shards_of_another_run(copy):
    with ShardWriter(copy, "train") as writer:
        writer.write([5], [6])
    with pytest.raises(UserError, match="lists 162 pairs.*hold 1"):
        PreparedData(copy).store("train")


def test_refuses_texts_that_lost_a_line(copy):
    file = copy / "valid.target.txt"
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:-1]), "utf-8")
    with pytest.raises(UserError, match=f"{len(lines)} and {len(lines) - 1}"):
        PreparedData(copy).texts("valid")


def test_refuses_references_that_were_edited(copy):
    file = copy / "valid.target.txt"
    file.write_text(file.read_text("utf-8").replace("alpha", "omega"), "utf-8")
    with pytest.raises(UserError, match="valid.target.txt is not the file"):
        PreparedData(copy).texts("valid")
    manifest = read_manifest(copy)
    assert damaged_files(copy, manifest) == ["valid.target.txt"]


def test_names_the_splits_there_are(prepared):
    data = PreparedData(prepared)
    with pytest.raises(UserError, match="no split `test`. It has: "):
        data.store("test")
    with pytest.raises(UserError, match="no text of `train`"):
        data.texts("train")
