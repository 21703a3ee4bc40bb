"""Batches computed at once give what they give one after another.

* translations, scores and samples are the same, also by many threads
* no program is compiled twice
* the caller's thread reports progress, in the order of the batches
* only a compiled model on a processor of several cores computes some at once
* a single batch of a small model is divided among the cores
* translators for several threads share programs, and nothing that changes
"""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.translator import Translator, batch_decoder
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.events import listen

pytestmark = pytest.mark.thorough

WORDS = "a small dog runs across the green field and sees two old men".split()


def make_texts(number):
    generator = np.random.default_rng(4)
    return [
        " ".join(generator.choice(WORDS, length))
        for length in generator.integers(1, 30, number)
    ]


TEXTS = make_texts(70)
# Of one padded length: they are one batch.
SHORT_TEXTS = [" ".join(text.split()[:2]) for text in TEXTS]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    return train_tokenizer(TEXTS, file, 41)


@pytest.fixture
def make(tokenizer):
    """Makes translators that compute some batches at once."""
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=200, seed=1)

    def make(at_once, **options):
        options = {"num_beams": 3, "batch_size": 8, **options}
        translator = Translator(model, tokenizer, tokenizer, **options)
        # Whatever cores there are.
        translator._decoder.batches_at_once = at_once
        return translator

    return make


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampling": True, "sampling_seed": 5},
        {"num_groups": 3},
    ],
    ids=str,
)
def test_results_at_once_are_those_one_after_another(
    make, options, monkeypatch
):
    # Stages of fewer rows, too.
    monkeypatch.setattr(tuned, "MANY_SENTENCES", 16)
    alone = make(1, **options)
    expected = [alone.translate_nbest(TEXTS, 2) for _ in range(2)]
    for at_once in (2, 4):
        translator, reports = make(at_once, **options), []
        listen(translator.model, reports.append)
        found = [translator.translate_nbest(TEXTS, 2) for _ in range(2)]
        assert found == expected
        assert len(reports) == alone.num_compilations


def test_translators_for_threads_have_all_but_the_programs_of_their_own(make):
    texts = TEXTS[:30], TEXTS[30:]
    expected = [make(1).translate_nbest(some, 2) for some in texts]
    translator = make(2)
    first, second = translator.for_threads()
    with ThreadPoolExecutor(2) as threads:
        calls = [
            threads.submit(one.translate_nbest, some, 2)
            for one, some in zip((first, second), texts, strict=True)
        ]
        assert [call.result() for call in calls] == expected
    assert first.search_state != second.search_state
    assert not translator.search_state["num_sentences"]
    first.num_beams = 2
    assert (second.num_beams, translator.num_beams) == (3, 3)


def test_translators_for_threads_share_programs(make):
    translator, reports = make(2), []
    listen(translator.model, reports.append)
    first, second = translator.for_threads()
    first.translate(SHORT_TEXTS[:8])
    assert reports
    reports.clear()
    second.translate(SHORT_TEXTS[:8])
    assert not reports


def test_scores_at_once_are_those_one_after_another(make):
    targets = TEXTS[::-1]
    expected = make(1).score(TEXTS, targets)
    assert make(3).score(TEXTS, targets) == expected


def test_progress_at_once_is_told_by_the_caller_in_order(make):
    told, threads = [], set()

    def on_progress(number):
        told.append(number)
        threads.add(threading.current_thread())

    make(1).translate(TEXTS, on_progress=on_progress)
    expected = told.copy()
    told.clear()
    make(2).translate(TEXTS, on_progress=on_progress)
    assert told == expected and len(told) > 5
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize(
    ("cores", "device", "compiled", "expected"),
    [
        (8, "cpu:0", True, 2),
        (1, "cpu:0", True, 1),
        (8, "gpu:0", True, 1),
        (8, "cpu:0", False, 1),
    ],
)
def test_two_at_once_on_several_cores(
    tokenizer, monkeypatch, cores, device, compiled, expected
):
    monkeypatch.setattr(batch_decoder, "num_cores", lambda: cores)
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: [device])
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=40)
    translator = Translator(model, tokenizer, tokenizer, compiled=compiled)
    assert translator._decoder.batches_at_once == expected


@pytest.fixture(scope="module")
def on_cores(tokenizer):
    """Translators by the number of cores and whether the model is large.

    One of each, so that a shape is compiled once.
    """
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=24, seed=1)

    @functools.cache
    def make(cores, is_large=False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_decoder, "num_cores", lambda: cores)
            few = 0 if is_large else 1_000_000
            patch.setattr(tuned, "FEW_WEIGHTS", few)
            translator = Translator(
                model, tokenizer, tokenizer, num_beams=3, batch_size=32
            )
        translator._decoder.batches_at_once = 2
        return translator

    return make


@pytest.mark.parametrize(
    "number",
    [
        1,
        9,
        2,
        31,
        32,
    ],
)
def test_a_single_batch_is_divided_among_the_cores(on_cores, number):
    def batches(cores, is_large=False):
        told = []
        found = on_cores(cores, is_large).translate_nbest(
            SHORT_TEXTS[:number], 2, on_progress=told.append
        )
        return found, told

    whole, told = batches(cores=1)
    assert told == [number]
    # The matrices of a large model are large enough for several cores.
    assert batches(cores=8, is_large=True) == (whole, told)
    parts, told = batches(cores=8)
    for found, expected in zip(parts, whole, strict=True):
        # Rows of another number may be rounded differently.
        assert [x.ids for x in found] == [x.ids for x in expected]
        scores = pytest.approx([x.score for x in expected], rel=1e-5)
        assert [x.score for x in found] == scores
    assert sum(told) == number
    assert len(told) == min(number, 2)
    assert max(told) <= 16


def test_sentences_of_two_batches_are_not_divided_further(on_cores):
    told = []
    on_cores(8).translate(SHORT_TEXTS[:40], on_progress=told.append)
    assert told == [32, 8]
