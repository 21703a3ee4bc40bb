"""Exports take beginnings, phrases and maximum lengths, as translators do.

* translations, scores and `constraints_met` are those of the translator, with
  known characters and with those that the vocabulary lacks
* what is left out asks for nothing; wrong inputs are refused
* greedy exports have beginnings, and refuse phrases
* clients and old exports: see also `test_serving_clients.py`
"""

import random

import numpy as np
import pytest
import tensorflow as tf
from foreign_tokenizer import foreign_tokenizer
from tiny_translator import all_pairs

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.serving.given_in_graph import (
    find_given,
    read_given,
    rows_to_find,
)
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator import given_text

pytestmark = pytest.mark.thorough

SOURCES = [source for source, _ in all_pairs()][:12]
WORDS = ["dog", "Łódź", "Żódź", "the Ł", "Ż", "Ł", "lion Ż", "paints", "Ł"]


def call(signatures, text, prefix=(), constraints=(), max_length=(), **numbers):
    most = max([0, *map(len, constraints)])
    rows = [[*row, *[""] * (most - len(row))] for row in constraints]
    numbers = {"num_hypotheses": 3, "length_penalty": 0.6, **numbers}
    outputs = signatures["translate_given"](
        text=tf.constant(text, tf.string),
        prefix=tf.constant(prefix, tf.string),
        constraints=tf.constant(rows, tf.string, (len(rows), most)),
        max_length=tf.constant(max_length, tf.int32),
        **{name: tf.constant(value) for name, value in numbers.items()},
    )
    return {name: x.numpy() for name, x in outputs.items()}


def assert_same(found, expected):
    """The outputs of the signature are hypotheses, best first."""
    for row, hypotheses in enumerate(expected):
        number = len(hypotheses)
        texts = [text.decode() for text in found["text"][row]]
        assert texts[:number] == [h.text for h in hypotheses]
        for name in ("truncated", "constraints_met"):
            values = [getattr(h, name) for h in hypotheses]
            assert found[name][row, :number].tolist() == values
        for name in ("score", "log_prob"):
            np.testing.assert_allclose(
                found[name][row, :number],
                [getattr(h, name) for h in hypotheses],
                rtol=1e-4,
                atol=1e-4,
            )
        assert not np.isfinite(found["score"][row, number:]).any()
        assert not found["constraints_met"][row, number:].any()


def test_translations_are_those_of_the_translator(loaded, translator):
    draw = random.Random(1)
    sources = [*SOURCES, "", "", "der Łódź ruft"]
    prefixes = [draw.choice(["", "Łódź is", "Ł", "the"]) for _ in sources]
    phrases = [draw.choices(WORDS, k=draw.randint(0, 3)) for _ in sources]
    lengths = [draw.choice([0, 0, 9, 40]) for _ in sources]
    prefixes[-2], phrases[-2] = "", []  # nothing is asked of an empty sentence
    given = {"prefixes": prefixes, "constraints": phrases}
    expected = translator.translate_nbest(
        sources, 3, **given, max_lengths=lengths
    )
    found = call(loaded.signatures, sources, prefixes, phrases, lengths)
    assert_same(found, expected)
    texts = " ".join(row[0].text for row in expected)
    assert "Łódź" in texts and "Żódź" in texts
    met = [hypothesis.constraints_met for row in expected for hypothesis in row]
    assert any(met) and not all(met)


def test_what_is_left_out_asks_for_nothing(loaded):
    nbest = loaded.signatures["translate_nbest"](
        text=tf.constant(SOURCES),
        num_hypotheses=tf.constant(3),
        length_penalty=tf.constant(0.6),
    )
    alone = call(loaded.signatures, SOURCES)
    blank = call(loaded.signatures, SOURCES, [""] * 12, [[""]] * 12, [0] * 12)
    for found in alone, blank:
        for name, values in nbest.items():
            if name in ("score", "log_prob"):
                np.testing.assert_allclose(found[name], values, rtol=1e-5)
            else:
                assert np.array_equal(found[name], values)
        assert found["constraints_met"].all()
    found = call(loaded.signatures, [], num_hypotheses=2)
    assert found["text"].shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prefix": ["a"]}, "prefix must have one value for each"),
        ({"max_length": [1, 2, 3]}, "max_length must have one value"),
        ({"max_length": [1, -1]}, "max_length must be at least 1"),
        ({"constraints": [["a"]]}, "one row of phrases for each sentence"),
        ({"prefix": ["the " * 64, ""]}, "at most 63 tokens"),
        ({"num_hypotheses": 4}, "1..3"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_wrong_inputs_are_refused(loaded, given, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(loaded.signatures, ["a", "b"], **given)


def test_greedy_exports_have_prefixes_alone(translator):
    greedy = translator.replaced(num_beams=1)
    signatures = ServingGraph(greedy).signatures
    numbers = {"num_hypotheses": 1}
    prefixes = ["Łódź is", "", "the", "Ł"]
    expected = greedy.translate_nbest(SOURCES[:4], 1, prefixes=prefixes)
    assert_same(call(signatures, SOURCES[:4], prefixes, **numbers), expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 2 bea"):
        call(signatures, SOURCES[:1], constraints=[["dog"]], **numbers)


def given_in_python(tokenizer, prefixes, phrases):
    begun = given_text.given_tokens(tokenizer, prefixes)
    parts = [
        [part for part in given_text.given_tokens(tokenizer, row) if part.ids]
        for row in phrases
    ]
    return begun, parts


def without_padding(rows):
    return sorted(row[row != 0].tolist() for row in rows if row.any())


def test_the_graph_finds_what_python_finds(tmp_path):
    """Or a little less, where phrases compete for overlapping places."""
    tokenizer = foreign_tokenizer(
        ["ab a b ba"] * 9, tmp_path / "m", model_type="char", vocab_size=7
    )
    in_graph = tokenizer.in_graph_tokenizer()
    draw = random.Random(4)
    parts = ["Ł", "Ż", "aŁ", "aŻ", "b", "a Ł", "a Ż", "Ł b", "", "Ł"]
    number = 200
    prefixes = [draw.choice(parts) for _ in range(number)]
    phrases = [draw.choices(parts, k=draw.randint(0, 2)) for _ in range(number)]
    phrases = [[*row, *[""] * (3 - len(row))] for row in phrases]
    space, *letters = (tokenizer.encode(["ab"])[0]).tolist()
    begun, wanted = given_in_python(tokenizer, prefixes, phrases)
    ids = np.zeros((number, 2, 14), "int32")
    for row, beginning in enumerate(begun):
        for hypothesis in ids[row]:
            rest = draw.choices([space, 1, 1, *letters], k=8)
            tokens = [*beginning.ids, *rest, 3]
            hypothesis[: len(tokens)] = tokens
    given = read_given(in_graph, tf.constant(prefixes), tf.constant(phrases))
    rows = rows_to_find(given).numpy()
    found, has_all = (x.numpy() for x in find_given(tf.constant(ids), given))
    flat = ids.reshape(-1, 14)
    texts = in_graph.detokenize_given(
        tf.constant(flat), tf.constant(found.reshape(-1, 14))
    ).numpy()
    num_met = num_missed = 0
    for row, (beginning, parts) in enumerate(zip(begun, wanted, strict=True)):
        expected = given_text.rows_to_find(beginning, parts)
        assert without_padding(rows[row]) == sorted(expected)
        for k, hypothesis in enumerate(ids[row]):
            tokens = hypothesis[hypothesis != 0].tolist()
            there = given_text.find_given(tokens, beginning, parts)
            num_met += has_all[row, k]
            if there.is_all and not has_all[row, k]:
                num_missed += 1  # a phrase could have left its place to another
                continue
            assert has_all[row, k] == there.is_all
            if there.is_all:
                text = given_text.text_with_given(
                    tokenizer, tokens, there.pieces.items()
                )
                assert texts[2 * row + k].decode() == text
    assert 40 < num_met < 2 * number - 40
    assert num_missed < 10


def test_given_text_is_read_where_case_is_factored(tmp_path):
    tokenizer = train_tokenizer(
        ["the NATO and a Dog"] * 9, tmp_path / "m", 34, case="factored"
    )
    in_graph = tokenizer.in_graph_tokenizer()
    # An export knows the rank of neither.
    texts = tf.TensorSpec(None, tf.string)

    def ids(prefixes, phrases):
        given = read_given(in_graph, prefixes, phrases)
        return given.prefix_ids, given.phrase_ids

    read = tf.function(ids, [texts] * 2)
    prefixes, phrases = ["THE NATO", ""], [["A DOG", "Ł"], ["", ""]]
    found = read(tf.constant(prefixes), tf.constant(phrases))
    begun, parts = given_in_python(tokenizer, prefixes, phrases)
    assert without_padding(found[0].numpy()) == [begun[0].ids]
    assert without_padding(found[1][0].numpy()) == sorted(
        part.ids for part in parts[0]
    )
