"""A verification finds every damage, in a process without this package."""

import json
import shutil
from contextlib import suppress
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tiny_translator import all_pairs

from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.serving import exporting
from keras_deepnmt.serving.clients import SavedModelClient
from keras_deepnmt.serving.golden import (
    GOLDEN_FILE,
    read_golden,
    write_golden,
)
from keras_deepnmt.serving.standalone import _difference
from keras_deepnmt.serving.verification import (
    translate_in_fresh_process,
    verify,
)

pytestmark = pytest.mark.thorough(each_commit=True)


@pytest.fixture
def copy(version_dir, tmp_path):
    shutil.copytree(version_dir, tmp_path / "3")
    return tmp_path / "3"


@pytest.mark.thorough
def test_an_untouched_export_is_verified_by_its_model_folder(
    version_dir, monkeypatch, capsys
):
    results = []

    def recorded(folder):
        results.append(verify(folder))
        return results[-1]

    monkeypatch.setattr("keras_deepnmt.serving.verify", recorded)
    assert main(["verify", str(version_dir.parent)]) == 0
    (found,) = results
    assert capsys.readouterr().out == f"{found}\n"
    assert found.directory == version_dir
    assert found.num_sentences == 17
    assert found.largest_difference <= 1e-5
    assert "17 golden sentences" in str(found)


@pytest.mark.thorough
def test_an_export_of_an_earlier_version_is_verified(copy, in_this_process):
    records = [
        {name: x for name, x in record.items() if "given" not in name}
        for record in read_golden(copy)
    ]
    write_golden(copy, records)
    # The signature is not asked for: an older graph lacks it.
    assert verify(copy).num_sentences == 17


def test_golden_sentences_have_given_text(version_dir):
    records = read_golden(version_dir)
    assert records[-1]["given_prefix"] == "🙂"
    for record in records:
        prefix, text = record["given_prefix"], record["given_text"]
        assert text.startswith(prefix) or not record["text"]
    assert sum(record["given_is_met"] for record in records) > 8
    assert any(not record["given_is_met"] for record in records)


@pytest.mark.thorough
def test_a_fresh_process_translates(version_dir):
    source, target = all_pairs()[0]
    texts = translate_in_fresh_process(version_dir, [source, ""])
    assert texts == [target, ""]


@pytest.mark.parametrize(
    "name, damage",
    [
        ("saved_model.pb", "flipped bit"),
        ("variables/variables.data-00000-of-00001", "flipped bit"),
        ("variables/variables.data-00000-of-00001", "missing"),
        ("variables/variables.index", "a folder"),
    ],
)
def test_a_damaged_file_of_an_export_is_named(copy, name, damage):
    file = copy / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink()
    if damage == "flipped bit":
        file.write_bytes(content)
    elif damage == "a folder":
        file.mkdir()
    for read in (verify, SavedModelClient):
        with pytest.raises(UserError, match=f"{file}: damaged"):
            read(copy)


@pytest.mark.parametrize("content", ["", "[]", '{"sha256": 3}', "{}"])
def test_a_damaged_description_of_an_export_is_named(copy, content):
    (copy / "assets.extra" / "export.json").write_text(content)
    with pytest.raises(UserError, match="export.json: "):
        verify(copy)
    with pytest.raises(UserError, match="export.json: .*Copy the export"):
        SavedModelClient(copy)


@pytest.mark.thorough
def test_a_weight_that_changed_is_found(copy, in_this_process):
    description = copy / "assets.extra" / "export.json"
    content = json.loads(description.read_text())
    # As an export of an earlier version, which has no hashes of its files.
    assert content.pop("sha256").keys() >= {"saved_model.pb"}
    description.write_text(json.dumps(content))
    prefix = str(copy / "variables" / "variables")
    reader = tf.train.load_checkpoint(prefix)
    names = sorted(reader.get_variable_to_shape_map())
    tensors = [tf.constant(reader.get_tensor(name)) for name in names]
    changed = names.index("model_weights/0/.ATTRIBUTES/VARIABLE_VALUE")
    tensors[changed] = tensors[changed] + 0.01
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=tensors,
    )
    with pytest.raises(UserError, match="golden sentences differ. The first"):
        verify(copy)


@pytest.mark.thorough
def test_a_golden_sentence_that_changed_is_named(copy, in_this_process):
    file = copy / GOLDEN_FILE
    records = [json.loads(line) for line in file.read_text().splitlines()]
    records[4]["score"] += 1e-3
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(UserError, match="number 5, .*`score` was"):
        verify(copy)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\n", "\r"])
def test_golden_sentences_with_line_separators_read_back(tmp_path, separator):
    record = {
        "source": f"a{separator}b",
        "text": f"c{separator}d",
        "score": -1.5,
        "nbest_text": [separator],
        "nbest_score": [-1.5],
        "target": "c",
        "target_log_prob": -0.5,
    }
    (tmp_path / GOLDEN_FILE).parent.mkdir()
    write_golden(tmp_path, [record, record])
    assert read_golden(tmp_path) == [record, record]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no golden sentence"),
        ("{", "damaged"),
        ('{"source": "a"}\n', "line 1: a golden sentence must have"),
    ],
)
def test_a_damaged_golden_file_is_refused(copy, content, message):
    (copy / GOLDEN_FILE).write_text(content)
    with pytest.raises(UserError, match=message):
        verify(copy)


def test_a_missing_golden_file_is_refused(copy):
    (copy / GOLDEN_FILE).unlink()
    with pytest.raises(UserError, match="no golden sentences to read"):
        verify(copy)


@pytest.mark.thorough
def test_a_damaged_graph_is_refused_in_one_line(copy):
    (copy / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(UserError, match="saved_model.pb: damaged"):
        verify(copy)
    # As it was exported by a version that recorded no hashes.
    description = copy / "assets.extra" / "export.json"
    content = json.loads(description.read_text())
    del content["sha256"]
    description.write_text(json.dumps(content))
    with pytest.raises(UserError, match="could not be run in a fresh process"):
        verify(copy)


@pytest.mark.parametrize("name", ["", "nothing"])
def test_a_folder_that_is_no_export_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="no exported model here"):
        verify(tmp_path / name)


def test_a_saved_model_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(UserError, match="export is not complete"):
        verify(tmp_path)


@pytest.mark.parametrize("before", [True, False])
def test_golden_sentences_have_all_digits_on_a_gpu(monkeypatch, before):
    """They are compared with what a CPU computes."""
    config = tf.config.experimental
    usual = config.tensor_float_32_execution_enabled()
    found = []

    def recorded(*given):
        found.append(config.tensor_float_32_execution_enabled())
        if before:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(exporting, "golden_records", recorded)
    model = SimpleNamespace(max_length=None)
    graph = SimpleNamespace(model=model, num_beams=1, finds_phrases=False)
    config.enable_tensor_float_32_execution(before)
    try:
        with suppress(KeyboardInterrupt):
            exporting._run_golden(graph, ["a dog"])
        found.append(config.tensor_float_32_execution_enabled())
    finally:
        config.enable_tensor_float_32_execution(usual)
    assert found == [False, before]


def test_differences_are_relative_above_one_and_never_lost():
    inf, nan = float("inf"), float("nan")
    assert _difference("a", "a") == 0
    assert _difference("a", "b") == inf
    assert _difference(-200.0, -200.002) == pytest.approx(1e-5)
    assert _difference(0.5, 0.25) == 0.25
    assert _difference(-inf, -inf) == 0
    assert _difference([-inf, 1.0], [-3.0, 1.0]) == inf
    assert _difference(1.0, nan) == inf
    assert _difference(nan, 1.0) == inf
    assert _difference([1.0], []) == inf
    assert _difference(["a", "b"], ["a", "c"]) == inf
