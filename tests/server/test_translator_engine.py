"""What must be true of the engine that translates with a model of the package.

* a full batch is searched by a program which sentences leave when they are over
* no request compiles anything after the warm-up
* its translations are those of the translator
* it completes a given beginning with TensorFlow alone
* it knows the tags of the training text, as that of an export does
* short sentences are not padded to save programs that are there already
"""

from types import SimpleNamespace

import pytest
from toy_model import ToyModel

from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.decoding.staged_search import StagedSearch
from keras_deepnmt.server import export_engine, translator_engine
from keras_deepnmt.server.export_engine import ExportEngine
from keras_deepnmt.server.translator_engine import TranslatorEngine
from keras_deepnmt.server.warm_up_shapes import warm_up_shapes
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.events import listen

WORDS = "a small dog runs across the green field and sees two old men".split()
BATCH_SIZE = 16


@pytest.fixture
def translator(tmp_path):
    tokenizer = train_tokenizer([" ".join(WORDS)] * 3, tmp_path / "model", 60)
    size = tokenizer.vocabulary_size
    return Translator(
        ToyModel(size, size, max_length=40, seed=1),
        *(tokenizer, tokenizer),
        num_beams=2,
        batch_size=BATCH_SIZE,
    )


@pytest.mark.thorough
def test_full_batches_are_searched_by_programs_that_sentences_leave(
    translator, monkeypatch
):
    monkeypatch.setattr(tuned, "MOST_PROGRAMS", 2)
    monkeypatch.setattr(
        translator_engine, "warm_up_shapes", lambda *_: [(16, 32), (16, 16)]
    )
    # One has more than 16 tokens, none has more than 32.
    short = [" ".join(WORDS[place : place + 2]) for place in range(11)]
    texts = [" ".join(2 * WORDS)[:99], *short, *short, *short[:9]]
    assert len(texts) == 2 * BATCH_SIZE
    expected = translator.translate(texts)
    engine = TranslatorEngine(translator, 32)
    # The graphs of an export, which no translation here needs.
    monkeypatch.setattr(translator_engine, "ServingGraph", lambda _: None)
    monkeypatch.setattr(engine, "predict", lambda *_: None)
    engine.warm_up()
    compilations, plans, count = [], [], StagedSearch.count
    listen(translator.model, compilations.append)

    def record(self, source_ids, *args):
        plans.append((source_ids.shape, count(self, source_ids, *args)))
        return plans[-1][1]

    monkeypatch.setattr(StagedSearch, "count", record)
    for _ in range(2):
        found = engine.translate(1, texts)
        assert [one.text for (one,) in found] == expected
    assert not compilations
    assert {shape for shape, _ in plans} == {(16, 16), (16, 32)}
    assert all(plan.is_compiled and plan.rows for _, plan in plans)


@pytest.mark.parametrize("longest", [32, 256, 1_000])
def test_full_batches_are_at_most_doubled(longest):
    shapes = warm_up_shapes(32, longest, tuned.MOST_PROGRAMS)
    lengths = sorted(length for rows, length in shapes if rows == 32)
    assert lengths[0] <= 16 and lengths[-1] >= longest
    for before, after in zip(lengths, lengths[1:], strict=False):
        assert after <= 2 * before


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_beginning_is_completed_with_tensorflow(
    translator, monkeypatch, backend
):
    engine = TranslatorEngine(translator, 40)
    monkeypatch.setattr("keras.config.backend", lambda: backend)
    assert engine.completes == (backend == "tensorflow")


def test_engines_know_the_tags_of_the_training_text(translator, monkeypatch):
    translator = translator.replaced(training_tags=["<law>", None, "<news>"])
    directions = [{"tag": tag} for tag in ("<law>", None, "<news>")]
    client = SimpleNamespace(
        description={"num_beams": 1, "directions": directions}
    )
    monkeypatch.setattr(export_engine, "SavedModelClient", lambda _: client)
    for engine in (TranslatorEngine(translator, 40), ExportEngine("mine")):
        assert engine.tagged("<news> a dog", "<law>") == "<news> a dog"
        assert engine.tagged("a dog", "<law>") == "<law> a dog"
    # An export of an earlier version.
    del client.description["directions"]
    assert ExportEngine("mine").tagged("a dog", None) == "a dog"
