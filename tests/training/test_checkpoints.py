"""What must be true of CheckpointStore.

* training that continues from a checkpoint gives the very same weights
* only the last checkpoints are kept; an extra one replaces none and is deleted
  with the next
* a damaged one is skipped, a partial one ignored; if all are damaged, no
  training continues
* files that a killed process left half done are deleted
* the best ones are kept beside them, and so are the best ones up to each of
  them, but no others
* a full disk leaves the previous one and gives one line
* the average is the mean of the weights, optimizer left out, of the last ones
  or of the best ones
"""

import errno
import os
import shutil
import types

import keras
import numpy as np
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256
from keras_deepnmt.training.checkpoint_files import read_checkpoint
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.schedules import InverseSquareRoot


def make_model():
    model = keras.Sequential(
        [
            keras.layers.Input((5,)),
            keras.layers.Dense(11),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(3),
        ]
    )
    model.compile(keras.optimizers.Adam(InverseSquareRoot(0.01, 3)), "mse")
    return model


def train(model, first, count):
    for step in range(first, first + count):
        rng = np.random.default_rng(step)
        model.train_on_batch(rng.normal(size=(7, 5)), rng.normal(size=(7, 3)))


@pytest.fixture
def saved(tmp_path):
    """A store with checkpoints at 1, 2, 3 and their model."""
    keras.utils.set_random_seed(17)
    model, store = make_model(), CheckpointStore(tmp_path, keep=3)
    for step in range(3):
        train(model, step, 1)
        store.save(model, step + 1)
    return model, store


def test_training_on_from_a_checkpoint_gives_the_same_weights(saved):
    model, store = saved
    train(model, 3, 2)
    keras.utils.set_random_seed(99)
    again = make_model()
    assert store.restore(again) == 3
    assert int(again.optimizer.iterations) == 3
    train(again, 3, 2)
    for expected, weight in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(expected.numpy(), weight.numpy())


def test_one_that_a_bad_disk_changed_costs_no_other(saved, monkeypatch):
    model, store = saved
    rename = os.rename

    def spoil(partial, final):
        if (partial / "state.npz").exists():
            (partial / "state.npz").write_bytes(b"something else")
        rename(partial, final)

    monkeypatch.setattr("os.rename", spoil)
    with pytest.raises(UserError, match="SHA-256"):
        store.save(model, 4)
    assert store.steps() == [1, 2, 3, 4]
    with pytest.warns(UserWarning, match="before it"):
        assert store.latest() == 3


def test_keeps_only_the_last(saved):
    model, store = saved
    assert store.steps() == [1, 2, 3]
    store.save(model, 5)
    assert store.steps() == [2, 3, 5]


def test_an_extra_one_takes_the_place_of_none_and_goes_with_the_next(saved):
    model, store = saved
    for step in (4, 5):
        store.save(model, step, extra=True)
        assert store.steps() == [1, 2, 3, step] and store.latest() == step
    store.save(model, 6)
    assert store.steps() == [2, 3, 6]


def test_one_whose_seal_is_damaged_is_no_extra_one(saved):
    model, store = saved
    (store.path(2) / "checkpoint.json").write_text("{")
    store.save(model, 4)
    assert store.steps() == [2, 3, 4]


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("file", ["model.weights.h5", "state.npz"])
def test_a_damaged_checkpoint_is_passed_over(saved, file):
    _, store = saved
    damaged = store.path(3) / file
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged"):
        assert store.restore(make_model()) == 2
    with pytest.raises(UserError, match="step-00000003.*damaged"):
        store.restore(make_model(), step=3)


def test_without_a_good_one_it_says_so_and_names_no_other(saved, recwarn):
    _, store = saved
    for step in (1, 2, 3):
        (store.path(step) / "state.npz").write_bytes(b"spoiled")
    with pytest.raises(UserError, match="damaged.*--restart") as info:
        store.restore(make_model())
    assert "step-00000003" in str(info.value)
    assert "before it" not in str(info.value) and "\n" not in str(info.value)
    assert not list(recwarn)


def test_the_best_one_is_no_checkpoint_to_go_on_from(saved, tmp_path):
    model, store = saved
    store.save_best(model, 3, "val_bleu", 27.5)
    best = store.best()
    assert (best.step, best.metric, best.value) == (3, "val_bleu", 27.5)
    weights = model.get_weights()
    train(model, 3, 1)
    for step in (4, 5, 6):
        store.save(model, step)
    assert store.steps() == [4, 5, 6] and store.latest() == 6
    assert store.average(tmp_path / "mean.weights.h5", last=3) == [4, 5, 6]
    again = make_model()
    read_checkpoint(best.path, again)
    for expected, weight in zip(weights, again.get_weights(), strict=True):
        np.testing.assert_array_equal(expected, weight)


def test_the_best_up_to_each_checkpoint_stays(saved):
    model, store = saved
    for step, value in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)):
        store.save_best(model, step, "val_bleu", value)
    store.save(model, 5)
    store.save(model, 6)
    # The checkpoints are 3, 5 and 6.
    store.delete_best_after(3)
    assert store.best().value == 3.0
    store.delete_best_after(2)
    assert store.best() is None


def test_the_mean_of_the_best_ones_is_that_of_their_weights(tmp_path):
    model = make_model()
    store = CheckpointStore(tmp_path / "checkpoints", keep=1, keep_best=2)
    kept = {}
    for step, value in enumerate((3.0, 9.0, 1.0, 5.0, 5.0), start=1):
        train(model, step, 1)
        kept[step] = model.get_weights()
        store.save_best(model, step, "val_bleu", value)
        store.save(model, step)
    assert [best.step for best in store.bests()] == [2, 4]
    assert store.best().step == 2
    file = tmp_path / "mean.weights.h5"
    assert store.average(file, best=2) == [2, 4]
    mean = make_model()
    mean.optimizer = None
    mean.load_weights(file)
    for one, other, weight in zip(
        kept[2], kept[4], mean.get_weights(), strict=True
    ):
        expected = ((np.float64(one) + other) / 2).astype("float32")
        np.testing.assert_array_equal(expected, weight)
    said = "2 checkpoints of best validations, but 3"
    with pytest.raises(UserError, match=said):
        store.average(file, best=3)


def test_the_best_ones_up_to_each_checkpoint_stay_and_no_more(saved):
    model, store = saved
    store.keep_best = 2
    for step, value in enumerate((9.0, 8.0, 4.0, 3.0, 2.0, 1.0), start=1):
        # The lowest value is the best one.
        written = store.save_best(model, step, "val_loss", value)
        assert written is not None
        store.save(model, step)
        assert len(store.bests()) <= store.keep + store.keep_best
    assert store.save_best(model, 7, "val_loss", 5.0) is None
    assert store.save_best(model, 7, "val_loss", float("nan")) is None
    # The checkpoints are 4, 5 and 6; each could be the one to go on from.
    for step in (6, 5, 4):
        store.delete_best_after(step)
        assert [b.step for b in store.bests()][:2] == [step, step - 1]


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "damage", ["without a seal", "unreadable", "of no file"]
)
def test_an_older_checkpoint_is_never_taken_in_silence(saved, damage):
    _, store = saved
    seal = store.path(3) / "checkpoint.json"
    seal.unlink()
    if damage == "unreadable":
        seal.mkdir()
    elif damage == "of no file":
        seal.write_text('{"step": 3, "sha256": {}}')
    with pytest.warns(UserWarning, match="step-00000003.*the checkpoint befo"):
        assert store.latest() == 2
    with pytest.raises(UserError, match="step-00000003.*Delete"):
        store.average(store.directory / "mean.weights.h5", last=2)


def test_a_damaged_best_one_is_left_out_with_a_warning(saved):
    model, store = saved
    store.save_best(model, 2, "val_bleu", 1.0)
    store.save_best(model, 3, "val_bleu", 2.0)
    (store.directory / "best-00000003" / "checkpoint.json").write_text("[]")
    with pytest.warns(UserWarning, match="best-00000003.*left out"):
        assert store.best().step == 2


@pytest.mark.filterwarnings("ignore:.*is not used, since its name")
def test_folders_of_the_user_are_not_deleted(saved):
    model, store = saved
    own = {"step-1-notes", "step-00000003.bak", "best-00000003-old"}
    own |= {".step-00000009.partial", "best-notes", "step-notes"}
    for name in own:
        shutil.copytree(store.path(3), store.directory / name)
    (store.directory / "step-1-notes" / "checkpoint.json").unlink()
    store.delete_unfinished()
    store.save(model, 4)
    assert store.steps() == [2, 3, 4] and store.bests() == []
    assert own < {path.name for path in store.directory.iterdir()}


def test_what_a_killed_process_left_is_deleted(saved):
    model, store = saved
    store.save_best(model, 3, "val_bleu", 1.0)
    for whole in list(store.directory.iterdir()):
        half = whole.name.replace("0000000", "0000001")
        name = f".{half}.0123456789abcdef.partial"
        shutil.copytree(whole, store.directory / name / half)
    store.delete_unfinished()
    left = {path.name for path in store.directory.iterdir()}
    kept = {f"step-{step:08d}" for step in (1, 2, 3)}
    assert left == kept | {"best-00000003"}
    CheckpointStore(store.directory / "none").delete_unfinished()


def test_a_full_disk_leaves_the_previous_one(saved, monkeypatch):
    model, store = saved

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(UserError, match="disk is full; step 3 is kept") as info:
        store.save(model, 4)
    assert "\n" not in str(info.value)
    assert store.latest() == 3
    assert not list(store.directory.glob(".*"))


def test_a_disk_without_room_is_seen_before_anything_is_written(
    saved, monkeypatch
):
    model, store = saved
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: types.SimpleNamespace(free=1000)
    )
    monkeypatch.setattr(model, "save_weights", None)
    with pytest.raises(UserError, match="disk is full; step 3 is kept"):
        store.save(model, 4)
    assert store.latest() == 3
    assert not list(store.directory.glob(".*"))


def test_an_interrupted_save_leaves_nothing(saved, monkeypatch):
    model, store = saved

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.save(model, 4)
    assert store.latest() == 3
    assert not list(store.directory.glob(".*"))


def test_the_average_is_the_mean_of_the_weights(saved, tmp_path):
    model, store = saved
    expected = []
    for step in (2, 3):
        store.restore(model, step)
        expected.append([weight.numpy() for weight in model.weights])
    file = tmp_path / "mean.weights.h5"
    assert store.average(file, last=2) == [2, 3]
    plain = make_model()
    plain.optimizer = None
    plain.load_weights(file)
    for first, second, weight in zip(*expected, plain.weights, strict=True):
        np.testing.assert_allclose(
            weight.numpy(), (first + second) / 2, rtol=1e-6
        )
    whole = store.path(3) / "model.weights.h5"
    assert file.stat().st_size < whole.stat().st_size


def test_refuses_to_average_more_than_there_is(saved, tmp_path):
    _, store = saved
    with pytest.raises(UserError, match="has 3 checkpoints, but 7 are to"):
        store.average(tmp_path / "mean.weights.h5", last=7)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["0003.bak", "0003-old", "3", "00000004"])
def test_a_copy_under_another_name_is_named_and_not_used(saved, tmp_path, name):
    model, store = saved
    copy = tmp_path / f"step-0000{name}"
    shutil.copytree(store.path(3), copy)
    with pytest.warns(UserWarning, match=f"{copy}: is not used"):
        assert store.steps() == [1, 2, 3]
    with pytest.warns(UserWarning, match="is not used"):
        assert store.average(tmp_path / "mean.weights.h5", last=2) == [2, 3]
    with (
        pytest.warns(UserWarning, match="is not used"),
        pytest.raises(UserError, match="has 3 checkpoints, but 4 are to"),
    ):
        store.average(tmp_path / "mean.weights.h5", last=4)
    shutil.copytree(store.path(3), tmp_path / "best-copy")
    with pytest.warns(UserWarning, match="best-copy: is not used"):
        assert store.best() is None
    assert copy.is_dir()


def test_an_average_of_the_same_checkpoint_twice_is_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="different checkpoints.*2, 2"):
        saved[1].average(tmp_path / "mean.weights.h5", steps=[2, 2])


def test_weights_of_another_model_are_refused_in_one_line(saved):
    _, store = saved
    other = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(2)])
    other.compile("adam", "mse")
    with pytest.raises(UserError, match="belongs to another model") as info:
        store.restore(other)
    assert "\n" not in str(info.value)


@pytest.mark.thorough
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04", None])
def test_random_states_that_are_none_are_refused_in_one_line(saved, content):
    """Of a stranger, who also wrote the hash of the file."""
    _, store = saved
    file, seal = (store.path(3) / x for x in ("state.npz", "checkpoint.json"))
    old = file_sha256(file)
    if content is None:
        np.savez(file, np.zeros((2, 3), "float32"))
    else:
        file.write_bytes(content)
    seal.write_text(seal.read_text().replace(old, file_sha256(file)))
    with pytest.raises(UserError, match="state.npz: .*random states") as info:
        store.restore(make_model())
    assert "\n" not in str(info.value)


def test_the_state_of_another_optimizer_is_refused_in_one_line(saved):
    _, store = saved
    other = make_model()
    other.compile(keras.optimizers.SGD(momentum=0.5), "mse")
    with pytest.raises(UserError, match="another model or optim") as info:
        store.restore(other)
    assert "\n" not in str(info.value)
