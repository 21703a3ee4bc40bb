"""What must be true of reranking.

* the scores are log-probabilities divided by the length penalty of the search
* with the weight of one model alone, the order is that of its scores
* a model of another vocabulary, and of the other direction, reads the texts
* a model does not score a text that it cannot read to its end
* translations with all required phrases come first, whatever their sums
"""

from dataclasses import replace

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.reranking import Reranker
from keras_deepnmt.translator import Translator

TEXTS = ["a small dog runs", "", "two men read the old book", "dog"]
CORPUS = [text for text in TEXTS if text] * 9


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    return [
        train_tokenizer(CORPUS, folder / f"{size}.model", size)
        for size in (30, 40)
    ]


def make_translator(tokenizer, seed, **options):
    size = tokenizer.vocabulary_size
    model = ToyModel(
        size, size, max_length=options.pop("max_length", 40), seed=seed
    )
    return Translator(model, tokenizer, tokenizer, compiled=False, **options)


@pytest.fixture(scope="module")
def translator(tokenizers):
    return make_translator(
        tokenizers[0], 1, num_beams=4, length_penalty=0.8, max_extra_tokens=5
    )


@pytest.fixture(scope="module")
def others(tokenizers):
    """Two of the same direction, of which one has other tokens; one reverse."""
    return (
        [make_translator(tokenizers[number], 2 + number) for number in (0, 1)],
        [make_translator(tokenizers[1], 4)],
    )


@pytest.fixture(scope="module")
def nbest(translator):
    return translator.translate_nbest(TEXTS, 4)


def test_scores_are_divided_by_the_length_penalty(translator, others, nbest):
    forward, reverse = others
    reranker = Reranker(translator, forward, reverse)
    counted = []
    features = reranker.features(TEXTS, nbest, counted.append)
    assert counted == [len(TEXTS)] * 3
    for source, found, rows in zip(TEXTS, nbest, features, strict=True):
        assert rows.shape == (len(found), 4)
        for hypothesis, row in zip(found, rows, strict=True):
            text = hypothesis.text
            assert row[0] == hypothesis.score
            pairs = [(other, source, text) for other in forward]
            pairs += [(other, text, source) for other in reverse]
            for value, (other, *pair) in zip(row[1:], pairs, strict=True):
                score = other.score(*pair)
                divisor = ((5 + len(score.tokens)) / 6) ** 0.8
                expected = score.total / divisor if source else 0.0
                assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.thorough(each_commit=True)
def test_an_order_is_that_of_the_weighted_sum(translator, others, nbest):
    features = Reranker(translator, *others).features(TEXTS, nbest)
    orders = []
    for weights in (*np.eye(4), [0.5, 0.2, 0.1, 0.2]):
        reranker = Reranker(translator, *others, weights)
        reranked = reranker.rerank(TEXTS, nbest)
        orders.append([[h.ids for h in found] for found in reranked])
        for found, before, rows in zip(reranked, nbest, features, strict=True):
            assert {h.ids for h in found} == {h.ids for h in before}
            scores = [h.score for h in found]
            assert scores == pytest.approx(sorted(rows @ weights)[::-1])
    assert orders[0] == [[h.ids for h in found] for found in nbest]
    # Models of random weights do not agree.
    assert len({str(order) for order in orders}) > 3


def test_equal_weights_are_the_default(translator, others, nbest):
    reranked = Reranker(translator, *others).rerank(TEXTS, nbest)
    given = Reranker(translator, *others, [1, 1, 1, 1])
    assert reranked == given.rerank(TEXTS, nbest)


def test_what_a_model_cannot_read_is_not_scored(translator, tokenizers, nbest):
    # Room for a few tokens: not for the longer sentences.
    short = make_translator(tokenizers[0], 2, max_length=6)
    unscored = []
    reranker = Reranker(
        translator,
        reverse=[short],
        on_unscored=lambda *received: unscored.append(received),
    )
    features = reranker.features(TEXTS, nbest)
    ((number, places),) = unscored
    assert number == 1 and 2 in places and 1 not in places
    for place in places:
        assert not features[place][:, 1].any()


def test_wrong_weights_are_refused(translator, others):
    for weights in ([1.0], [1, 2, 3, float("nan")]):
        with pytest.raises(UserError, match="needs 4 finite weights"):
            Reranker(translator, *others, weights)


def test_translations_with_all_phrases_stay_first(translator, others, nbest):
    reranker = Reranker(translator, *others)
    best = [found[0].ids for found in reranker.rerank(TEXTS, nbest)]
    # The best ones by their sums lack a phrase.
    lacking = [
        [replace(h, constraints_met=h.ids != ids) for h in found]
        for found, ids in zip(nbest, best, strict=True)
    ]
    for found, ids in zip(reranker.rerank(TEXTS, lacking), best, strict=True):
        assert found[-1].ids == ids
        scores = [hypothesis.score for hypothesis in found[:-1]]
        assert scores == sorted(scores, reverse=True)
