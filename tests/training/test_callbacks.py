"""What must be true of the training callbacks.

* checkpoints lie on a grid that ends at the last update; an extra one goes
  away, and those of a shorter run stay
* the checkpoint of an epoch's end is written after what others log
* the checkpoint of the best validation stays, and is made again with it
* early stopping stops where Keras' does, also when it was restarted between
* progress says everything in plain lines, or nothing, and adds to the logs
* a line announces each compilation
"""

import io
import math

import keras
import numpy as np
import pytest

from keras_deepnmt.models.training_step.training_state import NotedShapes
from keras_deepnmt.training.callbacks import (
    BestCheckpointCallback,
    CheckpointCallback,
    EarlyStopping,
)
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.training.schedules import InverseSquareRoot
from keras_deepnmt.xla.events import Compilation, announce


@pytest.fixture(scope="module")
def model():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(InverseSquareRoot(0.1, 5)), "mse")
    return model


def fit(model, callbacks, epochs, steps, start=0):
    model.optimizer.iterations.assign(start)
    count = epochs * steps
    model.fit(
        np.ones((count, 2)),
        np.ones((count, 1)),
        batch_size=1,
        epochs=epochs,
        steps_per_epoch=steps,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )


class Tokens(keras.callbacks.Callback):
    """Stands in for a model that counts tokens, and a validation."""

    def __init__(self, scores):
        super().__init__()
        self.scores = list(scores)

    def on_train_batch_end(self, batch, logs=None):
        logs["tokens"] = 100.0 * (batch + 1)

    def on_epoch_end(self, epoch, logs=None):
        logs["tokens"] = 500.0
        logs["val_bleu"] = self.scores[epoch]


def test_checkpoints_are_spaced_back_from_the_last_update(model, tmp_path):
    store = CheckpointStore(tmp_path)
    fit(model, [CheckpointCallback(store, 3, total_steps=10)], 2, 5)
    assert store.steps() == [1, 4, 7, 10]


def test_an_extra_checkpoint_goes_when_the_next_is_safe(model, tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(model, 7, extra=True)
    fit(model, [CheckpointCallback(store, 4, total_steps=10)], 1, 3, start=7)
    assert store.steps() == [10]


def test_the_checkpoints_of_a_shorter_run_stay(model, tmp_path):
    store = CheckpointStore(tmp_path, keep=3)
    fit(model, [CheckpointCallback(store, 3, total_steps=9)], 1, 9)
    # It goes on to an update that is not on the grid of the first ones.
    fit(model, [CheckpointCallback(store, 3, total_steps=10)], 1, 1, start=9)
    assert store.steps() == [6, 9, 10]


def test_the_last_update_of_an_epoch_is_saved_after_the_logs(model, tmp_path):
    store = CheckpointStore(tmp_path)
    seen = []
    log = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(store.steps())
    )
    fit(model, [log, CheckpointCallback(store, 1, total_steps=3)], 1, 3)
    assert seen == [[1, 2]] and store.steps() == [1, 2, 3]


def kept_best(model, store, scores, monitor="val_bleu", **options):
    """The best checkpoint after epochs of two updates with these scores."""
    validation = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update({monitor: scores[epoch]})
    )
    best = BestCheckpointCallback(store, monitor, **options)
    save = CheckpointCallback(store, 2, total_steps=2 * len(scores))
    fit(model, [validation, best, save], len(scores), 2)
    best = store.best()
    return best and (best.step, best.metric, best.value)


@pytest.mark.parametrize(
    ("monitor", "scores", "expected"),
    [
        ("val_bleu", [1.5, 3.5, 2.5, 3.5], (4, 3.5)),
        ("val_loss", [3.0, 2.0, 1.0, 4.0], (6, 1.0)),
        ("val_loss", [np.nan, 2.0, np.nan, np.nan], (4, 2.0)),
    ],
)
def test_the_checkpoint_of_the_best_validation_stays(
    model, tmp_path, monitor, scores, expected
):
    store = CheckpointStore(tmp_path, keep=1)
    step, value = expected
    assert kept_best(model, store, scores, monitor) == (step, monitor, value)
    assert store.steps() == [8]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"step-00000008", f"best-{step:08d}"}


def test_without_a_value_there_is_no_best_checkpoint(model, tmp_path):
    store = CheckpointStore(tmp_path)
    assert kept_best(model, store, [np.nan, np.nan], "val_loss") is None
    fit(model, [BestCheckpointCallback(store, "val_bleu")], 1, 2)
    assert store.best() is None


def test_the_best_validation_may_lie_between_two_checkpoints(model, tmp_path):
    store = CheckpointStore(tmp_path, keep=2)
    fit(
        model,
        [
            Tokens([1.0, 2.0, 1.5]),
            BestCheckpointCallback(store, "val_bleu"),
            CheckpointCallback(store, 5, total_steps=10),
        ],
        3,
        3,
    )
    assert store.steps() == [5]
    assert store.best().step == 6
    # A run that goes on from update 5 still has the best one up to there.
    store.delete_best_after(5)
    assert store.best().step == 3


@pytest.mark.parametrize("restart", [0, 1, 2, 3])
def test_early_stopping_is_the_same_after_a_restart(model, restart):
    scores = [1.0, 3.0, 2.0, 2.5, 9.0]
    stops = []
    for history in ([], list(enumerate({"val_bleu": s} for s in scores))):
        history = history[:restart]
        callback = EarlyStopping("val_bleu", patience=2, history=history)
        callback.set_model(model)
        model.stop_training = False
        callback.on_train_begin()
        for epoch in range(len(history), len(scores)):
            callback.on_epoch_end(epoch, {"val_bleu": scores[epoch]})
            if model.stop_training:
                stops.append(epoch)
                break
    assert stops == [3, 3]


def stopped_by(model, values, patience):
    """The number of validations after which early stopping stops, if any."""
    stopping = EarlyStopping("val_loss", patience)
    stopping.set_model(model)
    model.stop_training = False
    stopping.on_train_begin()
    for epoch, value in enumerate(values):
        stopping.on_epoch_end(epoch, {"val_loss": value})
        if model.stop_training:
            return epoch + 1, stopping.reason
    return None


def test_a_validation_without_a_number_is_no_best_one(model):
    nan = math.nan
    assert stopped_by(model, [nan, 3.0, 2.0, 1.0], 3) is None
    number, reason = stopped_by(model, [nan, 3.0, nan, nan, 1.0], 2)
    assert number == 4 and "no better `val_loss` than 3." in reason
    number, reason = stopped_by(model, [nan, nan], 1)
    assert number == 1 and "1 validations had no finite `val_loss`" in reason


def test_a_loss_gets_better_by_falling():
    assert EarlyStopping("val_loss", patience=1).mode == "min"


def test_progress_prints_plain_lines_outside_a_terminal(model):
    stream = io.StringIO()
    progress = ThroughputProgress(
        10, expected_compilations=7, padding_fraction=0.125, stream=stream
    )
    model.num_compilations = 4
    fit(model, [Tokens([1.5, 2.5]), progress], 2, 5)
    del model.num_compilations
    first, second = stream.getvalue().splitlines()
    assert first.startswith("update 5/10: loss ")
    assert "val_bleu 1.50" in first and "val_bleu 2.50" in second
    assert "tokens/s, padding 12.5 %, compilations 4/7" in second
    # That of the update to come, the eleventh: 0.1 * sqrt(5 / 11).
    assert "learning rate 6.74e-02" in second


def test_quiet_progress_prints_nothing_and_still_adds_to_the_logs(model):
    stream, rows = io.StringIO(), []
    progress = ThroughputProgress(5, quiet=True, stream=stream)
    keep = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rows.append(dict(logs))
    )
    fit(model, [Tokens([1.5]), progress, keep], 1, 5)
    assert stream.getvalue() == ""
    assert rows[0]["step"] == 5
    assert rows[0]["tokens_per_second"] > 0 and rows[0]["seconds"] > 0


def test_what_was_counted_before_a_resume_is_added_once(model):
    # Other tests may have trained it to a loss of exactly 0.
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    rows = []
    progress = ThroughputProgress(5, quiet=True)
    progress.resumed_counts = {
        "seconds": 1_000.0,
        "training_seconds": 900.0,
        "compile_seconds": 50.0,
        "tokens": 90_000.0,
        "loss_sum": 270_000.0,
    }
    keep = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: rows.append(
            {**logs, "next": progress.epoch_counts}
        )
    )
    fit(model, [Tokens([1.5, 2.5]), progress, keep], 2, 5)
    first, second = rows
    assert first["seconds"] > 1_000 and first["compile_seconds"] >= 50
    assert first["tokens"] == 90_000 + second["tokens"]
    assert 90 < first["tokens_per_second"] < 110
    # 90,000 tokens of 3 nats each, and those of this epoch.
    assert 0 < second["loss"] < 2.9 < first["loss"] < 3
    assert second["seconds"] < 1_000 and second["compile_seconds"] < 50
    # A checkpoint at the end of an epoch divides none.
    assert first["next"]["tokens"] == 0 and first["next"]["seconds"] < 10


@pytest.mark.parametrize("jit_compile", [True, False])
def test_each_compilation_is_announced(model, jit_compile):
    class Meets(keras.callbacks.Callback):
        """Stands in for a step that meets a shape before it is compiled."""

        def on_train_batch_begin(self, batch, logs=None):
            self.model.training_shapes.add((64, 24, 28 + batch // 2))
            self.model.evaluation_shapes.add((64, 24, 28))

    stream = io.StringIO()
    model.step_jit_compile = jit_compile
    model.training_shapes = NotedShapes(model, "training")
    model.evaluation_shapes = NotedShapes(model, "validation")
    progress = ThroughputProgress(6, 3, None, False, stream)
    progress.expected_validation_compilations = 1
    fit(model, [progress, Meets()], 1, 6)
    announce(model, Compilation("search", (32, 24)))
    compiling = [
        line for line in stream.getvalue().splitlines() if "compiling" in line
    ]
    assert compiling == jit_compile * [
        "compiling training shape 1 of 3: 64 x 24 -> 28 tokens",
        "compiling validation shape 1 of 1: 64 x 24 -> 28 tokens",
        "compiling training shape 2 of 3: 64 x 24 -> 29 tokens",
        "compiling training shape 3 of 3: 64 x 24 -> 30 tokens",
    ] + ["compiling the search for 32 x 24 tokens"]


def test_a_compilation_is_announced_without_asking_for_the_model(
    model, monkeypatch
):
    """On JAX that would take the weights from the step under way."""
    stream = io.StringIO()
    progress = ThroughputProgress(4, stream=stream)
    model.step_jit_compile = True
    model.training_shapes = NotedShapes(model, "training")
    progress.set_model(model)
    monkeypatch.delattr(progress, "_model")
    model.training_shapes.add((64, 24, 28))
    assert "training shape 1: 64 x 24 -> 28 tokens" in stream.getvalue()


def test_progress_is_a_live_bar_in_a_terminal(model):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    fit(model, [Tokens([1.5]), ThroughputProgress(5, stream=stream)], 1, 5)
    assert "5/5" in stream.getvalue() and "\x1b[" in stream.getvalue()
