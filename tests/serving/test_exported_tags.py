"""An export of a translator with a tag translates as the translator does."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import all_pairs, tagged_translator

from keras_deepnmt.serving import SavedModelClient, export, exporting
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator.requests import source_rows

SOURCES = [*(source for source, _ in all_pairs()[:3]), "", " \u00ad", "der 中"]
LONG = "der Hund sieht den Löwe " * 9


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return tagged_translator(
        tmp_path_factory.mktemp("translator"),
        (["<2de>", "<2fr>"], ["<2de>", "<2fr>"]),
        max_length=20,
        max_extra_tokens=2,
        tag="<2de>",
    )


@pytest.mark.thorough
def test_the_graph_puts_the_tag_before_each_text(translator):
    sources = [*SOURCES, LONG]
    graph = ServingGraph(translator)
    found = graph.search(tf.constant(sources), translator.length_penalty)
    nbest = translator.translate_nbest(sources, 2)
    for row, hypotheses in enumerate(nbest):
        for beam, hypothesis in enumerate(hypotheses):
            text = found["text"][row, beam].numpy().decode()
            assert text == hypothesis.text
            score = float(found["score"][row, beam])
            assert score == pytest.approx(hypothesis.score, abs=1e-4)
    np.testing.assert_array_equal(
        found["source_truncated"], [h[0].source_truncated for h in nbest]
    )
    assert nbest[-1][0].source_truncated
    # Another tag would have given other scores.
    plain = translator.replaced(tag="<2fr>").score(sources[:1], [""])
    assert plain != translator.score(sources[:1], [""])


def test_a_tag_in_the_text_before_nothing_is_an_empty_sentence(translator):
    tags = ["<2de>", "<2fr>"]
    graph = ServingGraph(translator.replaced(tag=None, training_tags=tags))
    texts = ["<2de> \u200b", "<2fr>", " <2fr> \u00ad\ufeff ", ""]
    for others in ([], ["der", "<2de> der", "<2de> <2fr>"]):
        rows, _, _ = graph._source_rows(tf.constant([*texts, *others]))
        expected, _ = source_rows(
            *(translator.source_tokenizer, [*texts, *others], 20),
            known_tags=tags,
        )
        assert rows.to_list() == expected
        assert expected[:4] == [[3]] * 4 and [3] not in expected[4:]


@pytest.mark.thorough
def test_a_tag_is_in_the_export_or_in_the_text(
    translator, tmp_path, monkeypatch
):
    # As another process does, which is tested elsewhere.
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    texts = SOURCES[:2]
    expected = translator.translate(texts)
    folder = export(translator, tmp_path / "tag", golden_sources=texts)
    description = folder / "assets.extra" / "export.json"
    assert json.loads(description.read_text())["tag"] == "<2de>"
    assert SavedModelClient(folder).translate(texts) == expected
    plain = ServingGraph(translator.replaced(tag=None))
    found = plain.search(
        tf.constant([f"<2de> {text}" for text in texts]),
        translator.length_penalty,
    )
    assert [x.decode() for x in found["text"][:, 0].numpy()] == expected
