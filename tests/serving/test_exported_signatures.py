"""What must be true of an export.

It translates and scores as the translator does, in any batch; it holds only
what a server has; it appears under its number complete or not at all.
"""

import json
import shutil
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf
from forked_processes import run_forked
from tiny_translator import all_pairs, make_translator

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving import exporting
from keras_deepnmt.serving.allowed_ops import check_ops
from keras_deepnmt.serving.exporting import export
from keras_deepnmt.serving.golden import read_golden
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough(each_commit=True)

SOURCES = [source for source, _ in all_pairs()]
LONG = " ".join(["der Hund sieht den Löwe"] * 30)


@pytest.fixture(scope="module")
def signatures(loaded):
    def call(name, **inputs):
        tensors = {
            key: tf.constant(
                value, tf.string if isinstance(value, list) else None
            )
            for key, value in inputs.items()
        }
        outputs = loaded.signatures[name](**tensors)
        return {key: value.numpy() for key, value in outputs.items()}

    return call


def decoded(array):
    return [text.decode() for text in array]


@pytest.mark.thorough
def test_a_served_list_has_the_different_texts_of_the_translator(translator):
    # So many that pieces of two divisions make one text, whatever the rounding
    # of the processor made of the weights.
    most = 60
    translator = translator.replaced(
        num_beams=most, max_length_ratio=0.0, max_extra_tokens=3
    )
    sources = [*SOURCES[:2], ""]
    expected = translator.translate_nbest(sources, most)
    everything = translator.translate_nbest(sources, most, distinct=False)
    assert len(expected[0]) < len(everything[0])
    # Operation by operation, which takes less time than a graph.
    outputs = ServingGraph(translator).search(tf.constant(sources), 0.6)
    found = {name: x.numpy() for name, x in outputs.items()}
    for row, hypotheses in enumerate(expected):
        number = len(hypotheses)
        texts = decoded(found["text"][row])
        assert texts == [h.text for h in hypotheses] + [""] * (most - number)
        np.testing.assert_allclose(
            found["score"][row],
            [h.score for h in hypotheses] + [-np.inf] * (most - number),
            rtol=1e-5,
        )
        np.testing.assert_array_equal(
            found["truncated"][row, :number], [h.truncated for h in hypotheses]
        )
        assert not found["truncated"][row, number:].any()


def test_translates_what_the_model_has_learnt(signatures):
    found = decoded(signatures("serving_default", text=SOURCES)["text"])
    targets = [target for _, target in all_pairs()]
    assert np.mean([a == b for a, b in zip(found, targets, strict=True)]) > 0.8


def test_translations_equal_those_of_the_translator(signatures, translator):
    sources = [*SOURCES[:7], "", "   ", LONG, "ﬁｖe Hu\u0308nd\u00a0.", "🙂 Ж"]
    found = signatures("serving_default", text=sources)
    expected = [row[0] for row in translator.translate_nbest(sources, 1)]
    assert decoded(found["text"]) == [row.text for row in expected]
    np.testing.assert_allclose(
        found["score"], [row.score for row in expected], rtol=1e-5, atol=1e-5
    )


def test_signatures_have_their_names_and_types(loaded):
    assert set(loaded.signatures) == {
        "serving_default",
        "translate_nbest",
        "translate_given",
        "score",
    }
    outputs = {
        name: {
            key: (spec.dtype.name, spec.shape.rank)
            for key, spec in function.structured_outputs.items()
        }
        for name, function in loaded.signatures.items()
    }
    assert outputs["serving_default"] == {
        "text": ("string", 1),
        "score": ("float32", 1),
        "truncated": ("bool", 1),
        "source_truncated": ("bool", 1),
    }
    assert outputs["translate_nbest"] == {
        "text": ("string", 2),
        "score": ("float32", 2),
        "log_prob": ("float32", 2),
        "truncated": ("bool", 2),
        "source_truncated": ("bool", 1),
    }
    assert outputs["translate_given"] == {
        **outputs["translate_nbest"],
        "constraints_met": ("bool", 2),
    }
    assert outputs["score"] == {
        "log_prob": ("float32", 1),
        "num_tokens": ("int32", 1),
        "token_log_prob": ("float32", 2),
        "source_truncated": ("bool", 1),
    }


def test_stores_the_defaults_of_optional_inputs(version_dir):
    from tensorflow.core.protobuf import saved_model_pb2

    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((version_dir / "saved_model.pb").read_bytes())
    definitions = proto.meta_graphs[0].signature_def
    defaults = [
        {
            name: tf.make_ndarray(value).tolist()
            for name, value in definitions[signature].defaults.items()
        }
        for signature in ("translate_nbest", "translate_given")
    ]
    numbers = {"num_hypotheses": 3, "length_penalty": pytest.approx(0.6)}
    nothing = {"prefix": [], "constraints": [], "max_length": []}
    assert defaults == [numbers, {**numbers, **nothing}]


def test_batch_mates_change_nothing(signatures):
    sources = [SOURCES[0], "", LONG, SOURCES[5]]
    together = signatures("serving_default", text=sources)
    for row, source in enumerate(sources):
        alone = signatures("serving_default", text=[source])
        assert alone["text"][0] == together["text"][row]
        assert alone["score"][0] == pytest.approx(
            together["score"][row], rel=1e-5, abs=1e-5
        )
    assert together["text"][1] == b"" and together["score"][1] == 0


def test_no_sentence_gives_no_translation(signatures):
    assert signatures("serving_default", text=[])["text"].shape == (0,)
    nbest = signatures(
        "translate_nbest", text=[], num_hypotheses=2, length_penalty=1.0
    )
    assert nbest["text"].shape == (0, 2)
    scored = signatures("score", source=[], target=[])
    assert scored["log_prob"].shape == (0,)


@pytest.mark.thorough
def test_nbest_comes_best_first_and_obeys_its_numbers(signatures, translator):
    nbest = signatures(
        "translate_nbest",
        text=[*SOURCES[:5], ""],
        num_hypotheses=2,
        length_penalty=1.0,
    )
    assert nbest["text"].shape == (6, 2)
    assert (np.diff(nbest["score"][:5], axis=1) <= 0).all()
    assert decoded(nbest["text"][5]) == ["", ""]
    assert nbest["score"][5].tolist() == [0.0, float("-inf")]
    other = Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        num_beams=3,
        length_penalty=1.0,
        compiled=False,
    )
    for row, expected in enumerate(other.translate_nbest(SOURCES[:5], 2)):
        assert decoded(nbest["text"][row]) == [h.text for h in expected]
        for name, values in (
            ("score", [h.score for h in expected]),
            ("log_prob", [h.log_prob for h in expected]),
        ):
            np.testing.assert_allclose(
                nbest[name][row], values, rtol=1e-5, atol=1e-5
            )


def test_more_hypotheses_than_beams_are_refused(signatures):
    for wrong in ({"num_hypotheses": 4}, {"num_hypotheses": 0}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="1..3"):
            signatures(
                "translate_nbest", text=["a"], length_penalty=0.6, **wrong
            )


def test_scores_equal_those_of_the_translator(signatures, translator):
    sources = [*SOURCES[:3], "", SOURCES[4]]
    targets = ["the dog sees the dog .", "a", "", "the tree", "ｔｈｅ 🙂"]
    found = signatures("score", source=sources, target=targets)
    for row, score in enumerate(translator.score(sources, targets)):
        length = len(score.tokens)
        assert found["num_tokens"][row] == length
        np.testing.assert_allclose(
            found["token_log_prob"][row, :length],
            score.log_probs,
            rtol=1e-5,
            atol=1e-5,
        )
        assert not found["token_log_prob"][row, length:].any()
        assert found["log_prob"][row] == pytest.approx(score.total, rel=1e-5)


def test_score_of_a_translation_is_what_the_search_reported(signatures):
    nbest = signatures(
        "translate_nbest",
        text=SOURCES[:4],
        num_hypotheses=1,
        length_penalty=0.6,
    )
    texts = decoded(nbest["text"][:, 0])
    found = signatures("score", source=SOURCES[:4], target=texts)
    np.testing.assert_allclose(
        found["log_prob"], nbest["log_prob"][:, 0], rtol=1e-4
    )


def test_score_refuses_sides_of_different_length(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="same length"):
        signatures("score", source=["a", "b"], target=["a"])


def test_score_refuses_a_target_beyond_the_position_range(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="63 tokens"):
        signatures("score", source=["a"], target=["the dog " * 40])


def test_greedy_export_equals_the_greedy_translator(translator):
    options = {"num_beams": 1, "length_penalty": 1.0, "length_offset": 0.0}
    graph = ServingGraph(translator, **options)
    greedy = Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        compiled=False,
        **options,
    )
    found = graph.signatures["serving_default"](tf.constant(SOURCES[:9]))
    expected = [row[0] for row in greedy.translate_nbest(SOURCES[:9], 1)]
    assert decoded(found["text"].numpy()) == [row.text for row in expected]
    np.testing.assert_allclose(
        found["score"], [row.score for row in expected], rtol=1e-5, atol=1e-5
    )


@pytest.mark.thorough
def test_two_exports_in_one_process_keep_their_tokenizers(signatures, tmp_path):
    # Its tokenizers are other ones: the texts are in capitals.
    other = ServingGraph(make_translator(tmp_path, uppercase=True, num_beams=1))
    module = other.module()
    del module.translate_nbest, module.score
    function = module.serving_default
    folder = str(tmp_path / "other")
    tf.saved_model.save(module, folder, {"serving_default": function})
    loaded = tf.saved_model.load(folder)
    texts = tf.constant([source.upper() for source in SOURCES[:3]])
    found = loaded.signatures["serving_default"](text=texts)["text"].numpy()
    assert found.tolist() == function(texts)["text"].numpy().tolist()
    again = signatures("serving_default", text=SOURCES[:3])["text"]
    assert decoded(again)[0] == "the dog sees the dog ."


@pytest.mark.thorough
def test_an_export_holds_only_what_a_server_has(version_dir):
    assert check_ops(version_dir) > 100


def save(folder, function):
    module = tf.Module()
    module.function = tf.function(
        function,
        input_signature=[tf.TensorSpec((3,), tf.float32, "x")],
        autograph=False,
    )
    tf.saved_model.save(
        module, str(folder), signatures={"serving_default": module.function}
    )
    return folder


def test_a_function_compiled_by_xla_is_refused(tmp_path):
    compiled = tf.function(lambda x: x + 1, jit_compile=True)
    folder = save(tmp_path / "m", lambda x: {"y": compiled(x)})
    with pytest.raises(ValueError, match="_XlaMustCompile in .*inference"):
        check_ops(folder)


def test_an_xla_operation_is_refused(tmp_path):
    compiled = tf.function(
        lambda x: keras.ops.slice_update(x, (1,), x[:1]), jit_compile=True
    )
    folder = save(tmp_path / "m", lambda x: {"y": compiled(x)})
    with pytest.raises(ValueError, match="XlaDynamicUpdateSlice in .*infer"):
        check_ops(folder)


def test_a_python_operation_is_refused(tmp_path):
    folder = save(
        tmp_path / "m",
        lambda x: {"y": tf.numpy_function(np.sort, [x], tf.float32)},
    )
    with pytest.raises(ValueError, match="PyFunc"):
        check_ops(folder)


def test_an_operation_of_another_library_is_refused(tmp_path):
    import tensorflow_text

    tokenizer = tensorflow_text.WhitespaceTokenizer()
    folder = save(
        tmp_path / "m",
        lambda x: {"y": tokenizer.tokenize(tf.strings.as_string(x)).values},
    )
    with pytest.raises(ValueError, match="TFText>WhitespaceTokenize"):
        check_ops(folder)


def test_versions_count_up_and_none_is_overwritten(
    translator, tmp_path, monkeypatch
):
    monkeypatch.setattr(exporting, "_save", write_something)
    monkeypatch.setattr(exporting, "check_ops", lambda folder: None)
    monkeypatch.setattr(exporting, "_write_description", lambda *rest: None)
    monkeypatch.setattr(exporting, "_run_golden", lambda *rest: [])
    monkeypatch.setattr(exporting, "warm_up_requests", lambda *rest: [])
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    assert export(translator, tmp_path).name == "1"
    assert export(translator, tmp_path, version=7).name == "7"
    (tmp_path / "9.partial-x").mkdir()
    assert export(translator, tmp_path).name == "8"
    with pytest.raises(UserError, match="already exists"):
        export(translator, tmp_path, version=7)


def write_something(translator, folder, dtype, **options):
    (folder / "saved_model.pb").write_bytes(b"")


def test_a_forbidden_operation_leaves_nothing(
    translator, tmp_path, monkeypatch
):
    def save_forbidden(translator, folder, dtype, **options):
        save(
            folder,
            lambda x: {"y": tf.numpy_function(np.sort, [x], tf.float32)},
        )

    monkeypatch.setattr(exporting, "_save", save_forbidden)
    with pytest.raises(ValueError, match="PyFunc"):
        export(translator, tmp_path / "served")
    assert not (tmp_path / "served").exists()


@pytest.mark.thorough
def test_a_golden_sentence_that_differs_leaves_nothing(
    translator, version_dir, tmp_path, monkeypatch, in_this_process
):
    def save_copy(translator, folder, dtype, **options):
        # Not what is written beside the graph later.
        later = shutil.ignore_patterns("assets.extra")
        shutil.copytree(version_dir, folder, ignore=later, dirs_exist_ok=True)
        return ServingGraph(translator)

    def wrong_golden(graph, sources):
        records = read_golden(version_dir)
        records[1]["text"] += "!"
        return records

    monkeypatch.setattr(exporting, "_save", save_copy)
    monkeypatch.setattr(exporting, "_run_golden", wrong_golden)
    with pytest.raises(UserError, match="1 of 17 .* differ.* is number 2, "):
        export(translator, tmp_path / "served")
    assert not (tmp_path / "served").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace
from keras_deepnmt.serving import exporting

def save_and_die(translator, folder, dtype, **options):
    (folder / "saved_model.pb").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

exporting._save = save_and_die
exporting.export(SimpleNamespace(), sys.argv[1], golden_sources=["a"])
"""


@pytest.mark.thorough
def test_a_killed_export_leaves_no_number_and_is_swept_up(
    translator, tmp_path, monkeypatch
):
    process = run_forked(["-c", KILLED, str(tmp_path)])
    assert process.returncode == -signal.SIGKILL
    left = [folder.name for folder in tmp_path.iterdir()]
    assert len(left) == 1 and left[0].endswith(".partial")
    test_versions_count_up_and_none_is_overwritten(
        translator, tmp_path, monkeypatch
    )
    assert left[0] not in [folder.name for folder in tmp_path.iterdir()]


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 0},
        {"num_beams": 0},
        {"length_penalty": -1.0},
        {"length_offset": -1.0},
    ],
)
def test_numbers_out_of_range_are_refused(translator, tmp_path, wrong):
    with pytest.raises(ValueError, match="at least|an integer from"):
        export(translator, tmp_path, **wrong)


def test_the_description_names_tokenizers_and_search(version_dir, translator):
    file = version_dir / "assets.extra" / "export.json"
    description = json.loads(file.read_text())
    assert description["num_beams"] == 3
    assert description["length_penalty"] == 0.6
    assert description["length_offset"] == 5.0
    assert description["max_source_length"] == 64
    assert (
        description["source_tokenizer_sha256"]
        == translator.source_tokenizer.sha256
    )
