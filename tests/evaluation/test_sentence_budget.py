"""What must be true of the share of the time that BLEU may take.

* translations take the given share of the time, if all do not fit
* all sentences are taken where they fit, or are few
* the choice is a function of the seed, is stored, and is read again
* the callback measures the chosen sentences alone, with an interval, and all
  sentences until it knows the speed of training
"""

import json

import keras
import numpy as np
import pytest

from keras_deepnmt.evaluation import BleuCallback, corpus_scores
from keras_deepnmt.evaluation.sentence_budget import (
    FEWEST_SENTENCES,
    PILOT_SENTENCES,
    SentenceBudget,
)


def budget(file=None, pace=0.1, share=0.1, seed=3):
    found = SentenceBudget(share, updates_between=500, seed=seed, file=file)
    if pace is not None:
        found.note_pace(pace)
    return found


def slow(rows):
    return 0.01 * len(rows)


def test_the_sentences_take_their_share_of_the_time():
    rows = budget(share=0.25).choose(2000, slow)
    training, translating = 0.1 * 500, 0.01 * len(rows)
    share = translating / (training + translating)
    assert share <= 0.25 and share == pytest.approx(0.25, abs=1e-3)
    assert len(set(rows)) == len(rows) and max(rows) < 2000
    assert list(rows) == sorted(rows)


def test_all_sentences_are_taken_where_they_fit():
    np.testing.assert_array_equal(budget().choose(500, slow), np.arange(500))


def test_a_compilation_does_not_count_as_translation():
    first = [100.0]

    def compiles(rows):
        assert len(rows) == PILOT_SENTENCES
        return slow(rows) + (first.pop() if first else 0.0)

    assert len(budget().choose(2000, compiles)) == len(
        budget().choose(2000, slow)
    )


def test_few_sentences_are_all_taken_and_never_timed():
    rows = budget(share=1e-6).choose(FEWEST_SENTENCES, seconds_of=None)
    assert len(rows) == FEWEST_SENTENCES
    assert len(budget(share=1e-6).choose(1000, slow)) == FEWEST_SENTENCES


def test_the_choice_depends_on_the_seed_alone_and_grows():
    chosen = budget().choose(2000, slow)
    np.testing.assert_array_equal(chosen, budget().choose(2000, slow))
    other = budget(seed=4).choose(2000, slow)
    assert len(other) == len(chosen) and set(other) != set(chosen)
    assert set(chosen) < set(budget(pace=0.2).choose(2000, slow))


def test_a_run_that_goes_on_takes_up_the_choice(tmp_path):
    file = tmp_path / "validation.json"
    chosen = budget(file).choose(2000, slow)
    assert json.loads(file.read_text())["sentences"] == len(chosen)
    # Another pace, and translation that may not be timed again.
    again = budget(file, pace=9.0).choose(2000, seconds_of=None)
    np.testing.assert_array_equal(again, chosen)
    # Other sentences are another choice.
    assert len(budget(file).choose(300, slow)) == 300


def test_a_pace_outlives_a_validation_that_was_broken_off(tmp_path):
    file = tmp_path / "validation.json"
    # The first counts: what another process measures may be slower.
    budget(file).note_pace(9.0)
    rows = budget(file, pace=None).choose(2000, slow)
    np.testing.assert_array_equal(rows, budget().choose(2000, slow))


def test_the_callback_measures_the_chosen_sentences_with_an_interval():
    draw = np.random.default_rng(5)
    words = draw.choice(list("abcde"), (400, 9))
    sources = [" ".join(row) for row in words]
    references = [" ".join(row) for row in np.where(words == "a", "b", words)]
    translated = []

    def translate(texts):
        translated.append(len(texts))
        return list(texts)

    bleu = BleuCallback(
        translate,
        sources,
        references,
        verbose=0,
        budget=SentenceBudget(1e-9, 1, seed=2),
    )
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(
        np.ones((8, 3)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[bleu]
    ).history
    assert translated == [PILOT_SENTENCES] * 2 + [FEWEST_SENTENCES] * 2
    assert history["val_bleu_sentences"] == [FEWEST_SENTENCES] * 2
    rows = SentenceBudget(1e-9, 1, seed=2).choose(400, slow)
    expected = corpus_scores(
        [sources[row] for row in rows],
        [references[row] for row in rows],
        ["bleu"],
        num_resamples=1000,
    )["bleu"]
    assert history["val_bleu"] == [expected.value] * 2
    assert history["val_bleu_interval"] == [expected.interval] * 2
    assert 0 < expected.interval < 20
    assert "|bs:1000|seed:" in bleu.score.signature


def bleu_within(budget, translated):
    """A callback of 120 sentences, and a model that it belongs to."""

    def translate(texts):
        translated.append(len(texts))
        return list(texts)

    texts = ["a b c d"] * 120
    bleu = BleuCallback(translate, texts, texts, verbose=0, budget=budget)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    bleu.set_model(model)
    return bleu, model


def test_all_sentences_are_translated_until_an_update_was_timed():
    translated, logs = [], {}
    bleu, model = bleu_within(SentenceBudget(1e-9, 1), translated)
    # As a run that goes on with a validation that was interrupted.
    bleu.on_epoch_end(0, logs)
    assert translated == [120] and logs["val_bleu_sentences"] == 120
    model.fit(
        np.ones((8, 3)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[bleu]
    )
    assert translated[1:] == [PILOT_SENTENCES] * 2 + [FEWEST_SENTENCES] * 2


def test_a_choice_that_was_stored_needs_no_pace(tmp_path):
    file, translated = tmp_path / "validation.json", []
    file.write_text('{"sentences": 7, "of_sentences": 120, "seed": 0}')
    bleu, _ = bleu_within(SentenceBudget(0.1, 1, file=file), translated)
    bleu.on_epoch_end(0, {})
    assert translated == [7]
