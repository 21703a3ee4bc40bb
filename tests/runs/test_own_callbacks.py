"""Callbacks of the user are called as `fit` calls them, and harm no run.

* one beginning and one end, an epoch for each validation, plain numbers
* an error in one ends the run with a message that names the line; the run goes
  on from there and ends with the weights of a run that nothing disturbed
* mistakes in a recipe are refused before anything is prepared
* of several workers the chief alone calls them, unless the class says else
"""

import types

import keras
import numpy as np
import pytest
from broken_runs import interrupt_after
from own_code_process import new_process

from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.own_callbacks import OwnCallbacks
from keras_deepnmt.translator.loading import read_run

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("without_search")]

RECORDER = """\
import keras

EVENTS = []


class Recorder(keras.callbacks.Callback):
    def __init__(self, fails_at=None, name="first"):
        super().__init__()
        self.fails_at, self.name = fails_at, name

    def on_train_begin(self, logs=None):
        EVENTS.append((self.name, "begin", self.params["epochs"]))

    def on_train_batch_end(self, batch, logs=None):
        EVENTS.append((self.name, "update", type(logs["loss"]).__name__))
        updates = sum(event[:2] == (self.name, "update") for event in EVENTS)
        if updates == self.fails_at:
            raise RuntimeError("no more paper")

    def on_epoch_end(self, epoch, logs=None):
        EVENTS.append((self.name, "epoch", epoch, sorted(logs)))
        logs["mine"] = 1

    def on_train_end(self, logs=None):
        EVENTS.append((self.name, "end"))
"""
UPDATE = ("first", "update", "float")


@pytest.fixture(autouse=True)
def file(tmp_path):
    file = tmp_path / "recorder.py"
    file.write_text(RECORDER)
    with new_process(tmp_path / "home", tmp_path):
        yield file


@pytest.fixture
def train_with(train_in, file):
    """Trains with callbacks of the file; returns it as a module."""

    def run(own, **options):
        changes = {"import": [str(file)], "training.callbacks": own}
        train_in(changes, **options)

    return run


def events():
    import recorder

    return recorder.EVENTS


def weights(folder):
    return read_run(folder).load_model().get_weights()


def test_a_callback_is_called_as_by_one_fit(train_with, file):
    train_with(["Recorder"])
    begin, *updates, end = events()
    epochs = [event for event in updates if event[1] == "epoch"]
    assert (begin, end) == (("first", "begin", 2), ("first", "end"))
    assert [event for event in updates if event not in epochs] == 6 * [UPDATE]
    assert [number for _, _, number, _ in epochs] == [0, 1]
    for *_, logs in epochs:
        assert {"loss", "val_loss", "val_bleu", "learning_rate"} <= {*logs}
    # What it adds is not in the run's log, whose columns are fixed.
    log = (file.parent / "run" / "log.csv").read_text()
    assert "val_bleu" in log and "mine" not in log


def fit_with(callbacks):
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    data = np.ones((6, 2)), np.ones((6, 1))
    options = {"epochs": 2, "batch_size": 2, "validation_data": data}
    model.fit(*data, **options, callbacks=callbacks, verbose=0)


def wrapped(*own):
    workers = types.SimpleNamespace(is_chief=True, is_distributed=False)
    return OwnCallbacks(own, 2, workers)


@pytest.mark.parametrize("wrap", [lambda own: own, wrapped], ids=["fit", "run"])
def test_hooks_that_are_set_on_an_object_are_called(wrap):
    seen = []

    class SetsLate(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.on_batch_end = lambda batch, logs: seen.append(batch)

    fit_with([wrap(SetsLate())])
    assert seen == 2 * [0, 1, 2]
    update = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    fit_with([wrap(update)])
    assert seen == 4 * [0, 1, 2]


@pytest.mark.parametrize("wrap", [lambda own: own, wrapped], ids=["fit", "run"])
def test_logs_may_have_any_name_where_fit_gives_them_by_position(wrap):
    seen = []

    class Names(keras.callbacks.Callback):
        def on_train_begin(self, values):
            seen.append("train")

        def on_epoch_begin(self, number, values):
            seen.append("begin")

        def on_test_begin(self, values):
            seen.append("test")

        def on_test_end(self, values):
            seen.append("tested")

        def on_epoch_end(self, number, values):
            seen.append("end")

        def on_train_batch_end(self, batch, *, logs):
            seen.append("update")

    fit_with([wrap(Names())])
    epoch = ["begin", *3 * ["update"], "test", "tested", "end"]
    assert seen == ["train", *epoch, *epoch]


def test_those_that_are_given_come_after_those_of_the_recipe(train_with, file):
    seen = []

    class Given(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(logs["mine"])

    train_with(["recorder.Recorder"], callbacks=[Given()])
    assert seen == [1, 1]


@pytest.mark.parametrize("update", [1, 4])
def test_an_error_in_a_callback_keeps_the_run(
    update, train_with, file, finished_run
):
    message = (
        r"the callback Recorder failed in on_train_batch_end: recorder.py, "
        r"line 18, in on_train_batch_end: RuntimeError: no more paper. The "
        rf"checkpoint of step {update} is saved in .*run. Run the same"
    )
    failing = {"Recorder": {"fails_at": update}}
    other = {"Recorder": {"name": "other"}}
    with pytest.raises(UserError, match=message):
        train_with([other, failing])
    assert events()[-2:] == [("other", "end"), ("first", "end")]
    events().clear()
    train_with(["Recorder"])
    assert [e[1] for e in events()].count("begin") == 1
    assert events().count(UPDATE) == 6 - update
    for expected, received in zip(
        weights(finished_run), weights(file.parent / "run"), strict=True
    ):
        np.testing.assert_array_equal(expected, received)


@pytest.mark.parametrize("is_own", [True, False])
def test_an_error_at_the_end_is_told_in_one_line(
    is_own, train_with, train_in, file
):
    text = RECORDER.replace('EVENTS.append((self.name, "end"))', "1 / 0")
    file.write_text(text)
    message = "^the callback Recorder failed in on_train_end: "
    message += "recorder.py, line 25, in on_train_end: " if is_own else ""
    message += "ZeroDivisionError: division by zero. The checkpoint of step 6 "
    with pytest.raises(UserError, match=message) as info:
        if is_own:
            train_with(["Recorder"])
        else:
            train_in(callbacks=[recorder_of_a_package()])
    assert str(info.value).count("ZeroDivisionError") == 1


def recorder_of_a_package():
    class Recorder(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            return 1 / 0

    return Recorder()


def test_an_error_before_the_first_update_leaves_no_run(train_with, file):
    text = RECORDER.replace('EVENTS.append((self.name, "begin"', "(1 / 0")
    file.write_text(text.replace(', self.params["epochs"]))', ")"))
    with pytest.raises(UserError, match="in on_train_begin: .*ZeroDivision"):
        train_with(["Recorder"])
    assert not (file.parent / "run").exists()


def test_an_interrupted_run_ends_for_its_callbacks(train_with, monkeypatch):
    interrupt_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt, match="checkpoint of step 2"):
        train_with(["Recorder"])
    assert events()[-1] == ("first", "end")


class Enough(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_callback_may_end_the_training(train_in):
    assert train_in(callbacks=[Enough()])["steps"] == 3


def test_a_callback_may_end_it_in_a_validation_that_is_made_up_for(
    train_in, monkeypatch
):
    interrupt_after(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt, match="checkpoint of step 3"):
        train_in()
    assert train_in(callbacks=[Enough()])["steps"] == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["Recordre"], 'has a callback "Recordre"'),
        (["keras.layers.Dense"], "must be a subclass of keras.*Callback"),
        (["keras.callbacks.Recorder"], "keras.callbacks has no Recorder"),
        ([{"Recorder": {"nam": 1}}], "`nam` is not .* mean `name`"),
        ([{"Recorder": 7}], "`training.callbacks.0`.*class name or {class na"),
        ([7], "`training.callbacks.0` must be text or a mapping"),
        ("Recorder", "`training.callbacks` must be a list"),
    ],
)
def test_a_mistake_is_refused(value, message, train_with, file):
    with pytest.raises(UserError, match=message):
        train_with(value)
    assert not (file.parent / "run").exists()


def test_an_object_that_is_no_callback_is_refused(train_in, file):
    with pytest.raises(UserError, match="must hold `keras.callbacks.Callback`"):
        train_in(callbacks=[print])
    assert not (file.parent / "run").exists()


class Everywhere(keras.callbacks.Callback):
    on_every_worker = True
    called = 0

    def on_epoch_end(self, epoch, logs=None):
        self.called += 1
        self.model.stop_training = True


class OnTheChief(Everywhere):
    on_every_worker = False


@pytest.mark.parametrize("is_chief", [True, False])
def test_other_workers_call_those_that_ask_for_it(is_chief):
    workers = types.SimpleNamespace(is_chief=is_chief, is_distributed=True)
    model = types.SimpleNamespace(stop_training=False)
    own = [Everywhere(), OnTheChief()]
    callbacks = OwnCallbacks(own, 2, workers)
    callbacks.set_model(model)
    model.stop_training = True
    callbacks.on_epoch_end(0, {})
    assert [c.called for c in own] == [1, int(is_chief)]


def test_the_chief_alone_may_not_end_the_training():
    workers = types.SimpleNamespace(is_chief=True, is_distributed=True)
    callbacks = OwnCallbacks([OnTheChief()], 2, workers)
    callbacks.set_model(types.SimpleNamespace(stop_training=False))
    with pytest.raises(UserError, match="the chief alone"):
        callbacks.on_epoch_end(0, {})
