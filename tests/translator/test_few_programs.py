"""What must be true of a translator that translates again and again.

* the number of its programs is bounded, whatever it translates or scores
* what it finds does not depend on the bound, nor does a score
* a batch that has no program of its own is padded to the nearest larger shape
* a translator that goes on as another one uses the same programs
* what is drawn at random stays the same
"""

import json

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.decoding.few_shapes import FewShapes
from keras_deepnmt.decoding.staged_search import StagedSearch
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla import tuned

TEXT = "the old woman reads a long book about the sea and the ships in it"
MOST = 3


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    return train_tokenizer([TEXT] * 3, file, 40)


@pytest.fixture
def make(tokenizer):
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, seed=1)
    options = {"max_length_ratio": 0.0, "max_extra_tokens": 9}
    return lambda compiled: Translator(
        model, tokenizer, tokenizer, compiled=compiled, num_beams=2, **options
    )


def requests():
    """Texts of all lengths, with what is given for them."""
    words = TEXT.split()
    for number, length in enumerate((1, 30, 4, 12, 60)):
        texts = [" ".join((words * 5)[:length])] * (1 + 5 * (number % 2))
        yield texts, {}
        if number % 3 == 1:
            prefixes = [" ".join(words[:number])] * len(texts)
            yield texts, {"prefixes": prefixes}
        elif number % 3 == 2:
            yield texts, {"max_lengths": [5 * number] * len(texts)}


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(tuned, "MOST_PROGRAMS", MOST)


@pytest.mark.thorough
def test_programs_stay_few_and_results_the_same(make, few):
    compiled, plain = make(True), make(False)
    for num_beams in (2, 1):
        for translator in (compiled, plain):
            translator.num_beams = num_beams
        for texts, given in requests():
            assert compiled.translate(texts, **given) == plain.translate(
                texts, **given
            )
            # Besides, a plain graph for each kind of request.
            assert compiled.num_compilations <= 2 * MOST
            assert plain.num_compilations <= MOST
    assert len(compiled.search_state["shapes"]) == MOST


@pytest.mark.thorough
def test_scores_stay_the_same_by_few_programs(make, few):
    compiled, plain = make(True), make(False)
    for texts, _ in requests():
        found, expected = (
            [each.total for each in translator.score(texts, texts)]
            for translator in (compiled, plain)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert compiled.num_compilations == MOST + 1
    assert plain.num_compilations == 1


@pytest.mark.thorough
def test_what_a_first_stage_leaves_is_searched_by_a_plain_graph(monkeypatch):
    monkeypatch.setattr(tuned, "MOST_PROGRAMS", 1)
    model = ToyModel(7, 9, seed=3)
    ids = np.zeros((8, 5), "int32")
    ids[:, 0], ids[:, 1] = 3, 0
    ids[1], ids[6] = [5, 6, 7, 4, 3], [4, 4, 5, 8, 3]
    options = SearchOptions(
        num_beams=2, max_length_ratio=8.0, max_extra_tokens=0, min_length=36
    )
    prefixes = np.full((8, 2), [5, 0], "int32")
    prefixes[6, 0] = 6
    staged, whole = StagedSearch(model), StagedSearch(model, compiled=False)
    found, expected = (
        search(ids, prefixes, options=options, max_length=40)
        for search in (staged, whole)
    )
    assert (found["ids"] != 0).sum(axis=-1).max() > 30
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4)
    # That of the first stage, and the graph.
    assert staged.num_compilations == 2


@pytest.mark.thorough
def test_a_translator_that_goes_on_uses_the_same_programs(make, few):
    first, second = make(True), make(True)
    for texts, _ in list(requests())[:3]:
        first.translate(texts)
    second.search_state = json.loads(json.dumps(first.search_state))
    for texts, given in requests():
        first.translate(texts, **given)
        second.translate(texts, **given)
    assert second.search_state == first.search_state


@pytest.mark.thorough
def test_a_translator_that_goes_on_scores_by_the_same_programs(make, few):
    first, second = make(True), make(True)
    texts = [" ".join((TEXT.split() * 5)[:length]) for length in (1, 30, 4, 60)]
    for text in texts:
        first.score(text, text)
    state = json.loads(json.dumps(first.search_state))
    assert len(state["scored"]) == MOST
    second.search_state = state
    # Padded to the second shape, which this translator has not compiled.
    first.score(texts[2] * 3, TEXT)
    second.score(texts[2] * 3, TEXT)
    assert second.search_state == first.search_state == state
    second.search_state = second.steady_search_state()
    assert second.search_state["scored"] == state["scored"]


@pytest.mark.thorough
def test_draws_are_those_of_a_compiled_search(make, few):
    compiled, plain = make(True), make(False)
    for translator in (compiled, plain):
        translator.options = translator.options.updated(
            sampling=True, num_beams=1, sampling_seed=3
        )
    words = TEXT.split() * 5
    longest = [" ".join(words)]
    before = compiled.translate(longest)
    for length in (40, 14, 6, 1):
        text = " ".join(words[:length])
        assert compiled.translate(text) == plain.translate(text)
    assert len(compiled.search_state["shapes"]) == MOST
    assert compiled.translate(longest) == before


def test_a_later_shape_is_padded_to_the_nearest_larger_one(few):
    shapes = FewShapes()
    for shape in ((4, 64), (16, 32), (1, 8)):
        assert shapes.choose(shape, "beam") == shape
        assert shapes.use(shape, "beam")
    assert shapes.is_full
    assert shapes.choose((4, 32), "beam") == (4, 64)
    assert shapes.choose((4, 64), "beam") == (4, 64)
    assert shapes.use((4, 64), "beam")
    # A shape that is 8 times as large; none with room; none for that search.
    for shape, name in (((1, 32), "beam"), ((64, 8), "beam"), ((1, 4), "a")):
        assert shapes.choose(shape, name) == shape
        assert not shapes.use(shape, name)
    assert shapes.use((1, 32), "beam", has_plain=False)
