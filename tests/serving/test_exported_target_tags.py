"""An export of a model with tags on the target side translates as it does."""

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tiny_translator import all_pairs, tagged_translator

from keras_deepnmt.data.tags import split_tags
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange import export_onnx
from keras_deepnmt.serving import SavedModelClient, export, exporting
from keras_deepnmt.serving.serving_graph import ServingGraph

TAGS = ["<2de>", "<2fr>"]
SOURCES = [*(source for source, _ in all_pairs()[:3]), "", " \u00ad", "der 中"]
TAGGED = [
    f"{tag} {text}" if text.strip() else text
    for tag, text in zip(TAGS * 3, SOURCES, strict=True)
]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return tagged_translator(
        tmp_path_factory.mktemp("translator"),
        ([], TAGS),
        max_length=30,
        max_extra_tokens=4,
        tag_side="target",
        training_tags=TAGS,
    )


def check_nbest(graph, translator, sources):
    begins = [tag + space for tag in TAGS for space in ("", " ")]
    found = graph.search(tf.constant(sources), translator.length_penalty)
    nbest = translator.translate_nbest(sources, 2)
    for row, hypotheses in enumerate(nbest):
        for beam, hypothesis in enumerate(hypotheses):
            text = found["text"][row, beam].numpy().decode()
            assert text == hypothesis.text
            # An untrained model may write tags of its own, further on, or
            # letters without a space after the tag.
            ids = hypothesis.ids[:-1]
            (whole,) = translator.target_tokenizer.decode([ids])
            assert whole in (text, *(f"{tag}{text}" for tag in begins))
            score = float(found["score"][row, beam])
            assert score == pytest.approx(hypothesis.score, abs=1e-4)


@pytest.mark.thorough(each_commit=True)
def test_the_graph_begins_translations_with_tags(translator):
    graph = ServingGraph(translator)
    check_nbest(graph, translator, TAGGED)
    given = graph.signatures["translate_given"](
        text=tf.constant(TAGGED[:2]),
        prefix=tf.constant(["the", ""]),
        num_hypotheses=tf.constant(1),
    )
    expected = translator.translate_nbest(TAGGED[:2], 1, prefixes=["the", ""])
    texts = [text.decode() for text in given["text"][:, 0].numpy()]
    assert texts == [one[0].text for one in expected]
    assert given["constraints_met"].numpy().all()
    targets = ["the dog", "", "the dog"]
    scores = graph.signatures["score"](
        tf.constant(TAGGED[:3]), tf.constant(targets)
    )
    for row, score in enumerate(translator.score(TAGGED[:3], targets)):
        assert scores["num_tokens"][row] == len(score.tokens)
        assert float(scores["log_prob"][row]) == pytest.approx(
            score.total, abs=1e-4
        )


@pytest.mark.thorough
def test_an_export_has_one_tag_or_takes_those_of_texts(
    translator, tmp_path, monkeypatch
):
    # As another process does, which is tested elsewhere.
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    own = translator.replaced(tag="<2fr>")
    expected = own.translate(SOURCES[:2])
    folder = export(own, tmp_path / "tag", golden_sources=SOURCES[:2])
    description = folder / "assets.extra" / "export.json"
    described = json.loads(description.read_text())
    assert (described["tag"], described["tag_side"]) == ("<2fr>", "target")
    assert SavedModelClient(folder).translate(SOURCES[:2]) == expected


def test_tags_are_found_where_the_translator_finds_them():
    tags = ["2pt", "2pt-BR", "2pt+"]
    texts = [
        *("2pt-BR Hund", "2pt Hund", "2pt+ a  b ", "2pt", " \t2pt-BR\n"),
        *("2pt\u00a0Hund", "\u30002pt\u2028\u00a0 Hund\n\nda", "2pt\x1fHund"),
        *("2pt-BRHund", "2pt\u200bHund", "Hund 2pt a", "", " \u00a0"),
    ]
    graph = SimpleNamespace(tag=None, _known_tags=tags)
    rest, found = ServingGraph._taken_off(graph, tf.constant(texts))
    expected = split_tags(texts, tags)
    assert [text.decode() for text in rest.numpy()] == expected[0]
    assert [tag.decode() or None for tag in found.numpy()] == expected[1]


def test_engines_without_such_a_beginning_are_refused(translator, tmp_path):
    with pytest.raises(UserError, match="`data.tag_side: target`"):
        export_onnx(translator, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
