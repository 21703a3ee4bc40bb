"""What must be true of the BLEU callback.

* `val_bleu` is there for the callbacks after it, and in the history
* it translates with the weights of that epoch
* training goes on as if it were not there
* its seconds and share of the wall time are reported
"""

import time

import keras
import numpy as np
import pytest

from keras_deepnmt.evaluation import BleuCallback


def tiny_model():
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


def fit(model, callbacks, epochs=3):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(11, 3)), generator.normal(size=(11, 1))
    return model.fit(
        x, y, batch_size=4, epochs=epochs, verbose=0, callbacks=callbacks
    )


def repeat(sources):
    return list(sources)


SENTENCES = ["a b c d e", "b c d e f"]


def test_later_callbacks_and_history_see_val_bleu():
    seen = []

    class Reader(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(logs.get("val_bleu"))

    bleu = BleuCallback(repeat, SENTENCES, SENTENCES, verbose=0)
    stop = keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=1)
    history = fit(tiny_model(), [bleu, Reader(), stop], epochs=5)
    # A perfect score cannot improve: early stopping has read it.
    assert seen == pytest.approx([100.0] * 2)
    assert history.history["val_bleu"] == pytest.approx([100.0] * 2)
    assert bleu.score.signature.startswith("nrefs:1")


def test_words_are_those_of_the_references_script():
    lines = ["今天早上，我的老老师画了一本旧书。", "那只猫在唱歌。"]
    better = BleuCallback(lambda _: [lines[0], lines[1][2:]], lines, lines)
    fit(tiny_model(), [better], epochs=1)
    assert "tok:zh|" in better.score.signature
    # Otherwise each line would be one word, and no checkpoint the best.
    assert 50 < better.score.value < 100


def test_translates_with_the_weights_of_the_epoch():
    model, kernels = tiny_model(), []

    def translate(sources):
        kernel = keras.ops.convert_to_numpy(model.layers[-1].kernel)
        kernels.append(kernel.copy())
        return sources

    after = []

    class Keep(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            after.append(model.get_weights()[0].copy())

    bleu = BleuCallback(translate, SENTENCES, SENTENCES, verbose=0)
    fit(model, [bleu, Keep()])
    assert len(kernels) == 3
    np.testing.assert_array_equal(kernels, after)
    assert (kernels[0] != kernels[2]).any()


def test_training_goes_on_as_without_it():
    with_bleu, without = tiny_model(), tiny_model()
    fit(with_bleu, [BleuCallback(repeat, SENTENCES, SENTENCES, verbose=0)])
    fit(without, [])
    for mine, other in zip(
        with_bleu.get_weights(), without.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


def test_measures_every_so_many_epochs_on_so_many_sentences():
    calls = []

    def translate(sources):
        calls.append(len(sources))
        return sources

    bleu = BleuCallback(
        translate,
        SENTENCES * 4,
        SENTENCES * 4,
        every_epochs=2,
        max_sentences=3,
        verbose=0,
    )
    fit(tiny_model(), [bleu], epochs=5)
    assert calls == [3, 3]


def test_tells_seconds_and_share(capsys):
    def slow(sources):
        time.sleep(0.05)
        return sources

    bleu = BleuCallback(slow, SENTENCES, SENTENCES)
    fit(tiny_model(), [bleu], epochs=2)
    assert bleu.seconds >= 0.05
    assert bleu.total_seconds >= 0.1
    assert 0 < bleu.share < 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("Epoch 2: val_bleu 100.00 (nrefs:1|")
    assert f"{100 * bleu.share:.1f} % of the time" in lines[1]


def test_the_share_is_that_of_several_calls_of_fit(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def slow(sources):
        clock[0] += 1.0
        return sources

    bleu = BleuCallback(slow, SENTENCES, SENTENCES, verbose=0)
    bleu.set_model(tiny_model())
    for trained, share in ((3.0, 1 / 4), (11.0, 2 / 16)):
        bleu.on_train_begin()
        clock[0] += trained
        bleu.on_epoch_end(0)
        assert bleu.share == share
        bleu.on_train_end()
        clock[0] += 100.0
    assert bleu.total_seconds == 2.0


def test_refuses_a_set_that_cannot_be_scored():
    with pytest.raises(ValueError, match="2 sources, 1 references"):
        BleuCallback(repeat, SENTENCES, SENTENCES[:1])
    with pytest.raises(ValueError, match="every_epochs=0"):
        BleuCallback(repeat, SENTENCES, SENTENCES, every_epochs=0)
    with pytest.raises(ValueError, match="max_sentences=0"):
        BleuCallback(repeat, SENTENCES, SENTENCES, max_sentences=0)
