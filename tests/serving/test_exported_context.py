"""The graph of an export shortens a long context as Python does."""

import random

import pytest
import tensorflow as tf
from toy_model import ToyModel

from keras_deepnmt.data import in_context
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.requests import source_rows

SENTENCES = [
    "a dog",
    "two men read the old book",
    "it runs",
    "the small dog reads a book to two old men",
    "men",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return train_tokenizer(
        SENTENCES * 9,
        tmp_path_factory.mktemp("tokenizer") / "source.model",
        36,
        user_defined_symbols=["<2de>", "<sep>"],
    )


@pytest.mark.parametrize("tag", [None, "<2de>", "own"])
@pytest.mark.parametrize("longest", [7, 20])
def test_a_context_is_shortened_before_the_sentence(tokenizer, tag, longest):
    draw = random.Random(3)
    document = [draw.choice(SENTENCES) for _ in range(30)]
    texts = ["", "a dog <sep> ", "<sep> a dog", *in_context(document, 3)]
    known = ["<2fr>", "<2de>"] if tag == "own" else []
    if tag == "own":
        # In the text, of sentences with one.
        tag = None
        spaces = ["<2de>\u00a0", "\u3000<2de> "]
        marks = ["<2de> ", " <2de> ", "<2de>", "", *spaces]
        texts += [f"{draw.choice(marks)}{text}" for text in texts]
        texts += ["<2de>", "<2de> \u200b", "<2fr> a", "dog <2de>"]
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=90)
    model.weights = []  # none to store
    translator = Translator(
        model,
        tokenizer,
        tokenizer,
        max_source_length=longest,
        compiled=False,
        tag=tag,
        training_tags=known,
    )
    rows, truncated, _ = ServingGraph(translator)._source_rows(
        tf.constant(texts)
    )
    expected, cut = source_rows(tokenizer, texts, longest, tag, known)
    assert rows.to_list() == expected
    assert tf.where(truncated)[:, 0].numpy().tolist() == cut
    # Some contexts are shortened, and some sentences are cut.
    whole = [len(ids) for ids in tokenizer.encode(texts)]
    assert 0 < len(cut) < sum(length >= longest for length in whole)
