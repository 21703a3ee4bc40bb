"""What an export truncates, accepts and refuses.

* it truncates translations where the translator does, and marks them
* it marks sources that are longer than the model allows
* a text without an axis is one sentence; other ranks are refused
* a model of NaN is not exported
"""

import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import all_pairs, make_translator

from keras_deepnmt.data import Shortlists
from keras_deepnmt.errors import UserError
from keras_deepnmt.serving import exporting
from keras_deepnmt.serving.exporting import export
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough

SOURCES = [source for source, _ in all_pairs()][:3]
LONG = " ".join(["der Hund sieht den Löwe"] * 30)


@pytest.fixture(scope="module")
def loaded(version_dir):
    return tf.saved_model.load(str(version_dir)).signatures


def other(translator, **options):
    return Translator(
        translator.model,
        translator.source_tokenizer,
        translator.target_tokenizer,
        compiled=False,
        **options,
    )


@pytest.mark.parametrize("num_beams", [1, 2])
def test_graphs_cut_and_mark_what_the_translator_does(translator, num_beams):
    brief = other(
        translator,
        num_beams=num_beams,
        max_length_ratio=0.25,
        max_extra_tokens=3,
    )
    sources = [*SOURCES, "", "der", LONG]
    expected = brief.translate_nbest(sources, num_beams)
    graph = ServingGraph(brief)
    assert graph.options == brief.options
    found = graph.search(tf.constant(sources), 0.6)
    for row, hypotheses in enumerate(expected):
        for beam, hypothesis in enumerate(hypotheses):
            text = found["text"][row, beam].numpy().decode()
            assert text == hypothesis.text
            truncated = bool(found["truncated"][row, beam])
            assert truncated == hypothesis.truncated
    best = [hypotheses[0] for hypotheses in expected]
    assert best[0].truncated and not best[3].truncated
    np.testing.assert_array_equal(
        found["source_truncated"], [h.source_truncated for h in best]
    )
    assert best[-1].source_truncated


def test_loaded_signatures_mark_long_sources(loaded):
    sources = tf.constant([SOURCES[0], LONG, ""])
    outputs = [
        loaded["serving_default"](text=sources),
        loaded["translate_nbest"](
            text=sources,
            num_hypotheses=tf.constant(2),
            length_penalty=tf.constant(0.6),
        ),
        loaded["score"](source=sources, target=tf.constant(["x"] * 3)),
    ]
    for output in outputs:
        truncated = output["source_truncated"].numpy().tolist()
        assert truncated == [False, True, False]
    empty = loaded["serving_default"](text=tf.constant([], tf.string))
    assert empty["source_truncated"].shape == empty["truncated"].shape == (0,)


def test_a_text_without_an_axis_is_one_sentence(loaded):
    one, list_of_one = (
        loaded["serving_default"](text=tf.constant(text))
        for text in (SOURCES[0], SOURCES[:1])
    )
    assert one["text"].numpy().tolist() == list_of_one["text"].numpy().tolist()
    scored = loaded["score"](
        source=tf.constant(SOURCES[0]), target=tf.constant("the dog")
    )
    assert scored["log_prob"].shape == (1,)
    nbest = loaded["translate_nbest"](
        text=tf.constant(SOURCES[0]),
        num_hypotheses=tf.constant(2),
        length_penalty=tf.constant(0.6),
    )
    assert nbest["text"].shape == (1, 2)


def test_texts_with_two_axes_are_refused(loaded):
    for name, inputs in (
        ("serving_default", ("text",)),
        ("score", ("source", "target")),
    ):
        texts = dict.fromkeys(inputs, tf.constant([SOURCES[:2]]))
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="must be a list of sentences"
        ):
            loaded[name](**texts)


def test_shortlists_are_refused(translator, tmp_path):
    sizes = [
        tokenizer.vocabulary_size
        for tokenizer in (
            translator.source_tokenizer,
            translator.target_tokenizer,
        )
    ]
    one = translator.replaced(
        shortlists=Shortlists(
            np.zeros((sizes[0], 1), "int32"), np.array([4], "int32"), sizes[1]
        )
    )
    with pytest.raises(UserError, match="has no shortlists.*shortlists=None"):
        export(one, tmp_path / "served" / "demo")
    assert not (tmp_path / "served").exists()


def test_golden_sentences_are_no_string(translator, tmp_path):
    with pytest.raises(TypeError, match="`golden_sources` must hold sentences"):
        export(translator, tmp_path, golden_sources="der Hund")


def test_a_model_of_nan_is_not_exported(tmp_path, monkeypatch):
    translator = make_translator(tmp_path, num_beams=1, compiled=False)
    weight = translator.model.weights[0]
    weight.assign(np.full(weight.shape, np.nan))
    monkeypatch.setattr(
        exporting, "_save", lambda translator, *rest: ServingGraph(translator)
    )
    monkeypatch.setattr(exporting, "check_ops", lambda folder: None)
    with pytest.raises(UserError, match=f"NaN .* {weight.path} is not finite"):
        export(translator, tmp_path / "served", golden_sources=["der Hund"])
    assert not (tmp_path / "served").exists()
