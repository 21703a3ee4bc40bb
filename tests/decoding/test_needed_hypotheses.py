"""What must be true of a search of which only the best hypotheses are needed.

* they are those of a search that finds all
* it is over earlier
* phrases need all hypotheses
* another number needs no compilation
* a translator needs one for a translation, and all for different texts
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.decoding import SearchOptions, compile_for
from keras_deepnmt.decoding.beam import BeamSearch
from keras_deepnmt.decoding.staged_search import StagedSearch
from keras_deepnmt.translator import Translator

NUM_BEAMS = 4
PHRASES = np.array([[[5, 0]], [[0, 0]], [[6, 7]]], "int32")


def count_steps(model, source_ids, constraint_ids, num_needed, *, options):
    """The result of a search, and the number of its steps."""
    search = BeamSearch(model, options)
    carried = search.begin(
        source_ids,
        30,
        constraint_ids=constraint_ids,
        num_needed=num_needed,
    )
    carried = search.advance(carried)
    return search.outputs(carried), carried["state"]["step"]


@pytest.mark.thorough
@pytest.mark.parametrize("num_groups", [1, 2])
def test_the_best_are_found_sooner(num_groups):
    model = ToyModel()
    search = compile_for(model, count_steps, jit_compile=False)
    options = SearchOptions(num_beams=NUM_BEAMS, num_groups=num_groups)
    steps = []
    for seed in range(8):
        model.draw_weights(seed, scale=1.0)
        whole, longest = search(SOURCES, None, NUM_BEAMS, options=options)
        for number in (1, 2):
            found, step = search(SOURCES, None, number, options=options)
            for name, values in whole.items():
                np.testing.assert_array_equal(
                    found[name][:, :number], values[:, :number]
                )
            assert step <= longest
            steps.append(int(step))
        steps.append(int(longest))
    fewest, _, most = np.reshape(steps, (-1, 3)).sum(axis=0)
    assert fewest < most
    assert search.num_compilations == 1


@pytest.mark.thorough
def test_phrases_need_all():
    model = ToyModel()
    search = compile_for(model, count_steps, jit_compile=False)
    options = SearchOptions(num_beams=NUM_BEAMS)
    (found, step), (whole, longest) = (
        search(SOURCES, PHRASES, number, options=options)
        for number in (1, NUM_BEAMS)
    )
    assert step == longest
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_translator_needs_one_for_a_translation(tmp_path, monkeypatch):
    texts = ["a small dog runs", "the dog sees a field"]
    tokenizer = train_tokenizer(texts * 3, tmp_path / "model", 25)
    size = tokenizer.vocabulary_size
    translator = Translator(
        ToyModel(size, size, max_length=30),
        *(tokenizer, tokenizer),
        compiled=False,
    )
    needed, search = [], StagedSearch.__call__

    def record(self, *args, num_needed=None, **kwargs):
        needed.append(num_needed)
        return search(self, *args, num_needed=num_needed, **kwargs)

    monkeypatch.setattr(StagedSearch, "__call__", record)
    best = translator.translate(texts)
    for distinct in (True, False):
        nbest = translator.translate_nbest(texts, 2, distinct=distinct)
        assert [found[0].text for found in nbest] == best
    assert needed == [1, None, 2]
