"""What must be true of weights files, which may come from a stranger.

* an array that lies outside the file is not read, whoever reads the weights
* an array that a few bytes claim to be large is not read
* a full disk is an error that leaves the old file, and no other one
* whole arrays of the file itself are read
"""

import errno

import h5py
import keras
import numpy as np
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.training.optimizers import Adam
from keras_deepnmt.training.weight_average import load_averages, write_mean
from keras_deepnmt.weights_files import (
    check_room,
    load_weights,
    opened_weights,
    round_weights,
    written_weights,
)

ARRAY = "layers/dense/vars/0"


@pytest.fixture
def model():
    return keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])


@pytest.fixture
def file(model, tmp_path):
    path = tmp_path / "given.weights.h5"
    model.save_weights(path)
    return path


def outside(file):
    """The array of a file beside it, and the bytes of that array."""
    with h5py.File(file.with_name("other.h5"), "w") as other:
        other["values"] = np.ones((3, 2), "float32")
    raw = file.with_name("values.bin")
    raw.write_bytes(np.ones((3, 2), "float32").tobytes())
    return str(file.with_name("other.h5")), raw


def external_dataset(weights, file):
    _, raw = outside(file)
    weights.create_dataset(
        ARRAY, (3, 2), "float32", external=[(str(raw), 0, 24)]
    )


def virtual_dataset(weights, file):
    layout = h5py.VirtualLayout((3, 2), "float32")
    layout[:] = h5py.VirtualSource(outside(file)[0], "values", (3, 2))
    weights.create_virtual_dataset(ARRAY, layout)


def external_link(weights, file):
    weights[ARRAY] = h5py.ExternalLink(outside(file)[0], "values")


def soft_link(weights, file):
    weights[ARRAY] = h5py.SoftLink("/layers/dense/vars/1")


def link_to_a_group(weights, file):
    del weights["layers/dense"]
    weights["layers/dense"] = h5py.ExternalLink(outside(file)[0], "/")


def large_array(weights, file):
    weights.create_dataset(
        ARRAY, (3_000, 2_000), "float32", chunks=True, compression="gzip"
    )


def load(model, file):
    load_weights(model, file)


def average(model, file):
    write_mean([file, file], file.with_name("mean.weights.h5"))


def take_averages(model, file):
    optimizer = Adam(average_momentum=0.9)
    load_averages(file, optimizer, model.trainable_variables)


@pytest.mark.parametrize("read", [load, average, take_averages])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external_dataset, f"{ARRAY} lies outside this file"),
        (virtual_dataset, f"{ARRAY} lies outside this file"),
        (external_link, f"{ARRAY} is a link"),
        (soft_link, f"{ARRAY} is a link"),
        (link_to_a_group, "layers/dense is a link"),
        (large_array, f"{ARRAY} would have 24,000,000 bytes, of which .* 0"),
    ],
)
def test_values_of_another_file_never_get_into_a_model(
    model, file, change, message, read
):
    before = model.get_weights()
    with h5py.File(file, "a") as weights:
        del weights[ARRAY]
        change(weights, file)
    with pytest.raises(UserError, match=message) as info:
        read(model, file)
    assert str(file) in str(info.value) and "\n" not in str(info.value)
    np.testing.assert_equal(model.get_weights(), before)
    assert not file.with_name("mean.weights.h5").exists()


@pytest.mark.parametrize("options", [{}, {"chunks": (2, 2)}, {"gzip": True}])
def test_arrays_of_the_file_itself_are_read(model, file, options):
    if options.pop("gzip", False):
        options["compression"] = "gzip"
    values = np.arange(6, dtype="float32").reshape(3, 2)
    with h5py.File(file, "a") as weights:
        del weights[ARRAY]
        weights.create_dataset(ARRAY, data=values, **options)
    load_weights(model, file)
    np.testing.assert_array_equal(model.get_weights()[0], values)


def test_a_file_that_is_no_weights_file_is_named(tmp_path):
    file = tmp_path / "text.weights.h5"
    file.write_text("text")
    for path in (file, tmp_path / "missing.weights.h5"):
        with pytest.raises(UserError, match=path.name) as info:
            with opened_weights(path):
                pass
        assert "not a readable weights file" in str(info.value)


def test_arrays_of_other_shapes_are_not_averaged(model, file):
    other = file.with_name("other.weights.h5")
    with h5py.File(file) as one, h5py.File(other, "w") as changed:
        for name in one:
            one.copy(name, changed)
        del changed[ARRAY]
        changed[ARRAY] = np.ones((1, 2), "float32")
    with pytest.raises(UserError, match=rf"other.*{ARRAY} must have the shape"):
        write_mean([file, other], file.with_name("mean.weights.h5"))


def test_weights_in_bfloat16_are_averaged(tmp_path):
    layer = keras.layers.Dense(2, dtype="bfloat16")
    model = keras.Sequential([keras.Input((3,)), layer])
    files = [tmp_path / f"{number}.weights.h5" for number in range(3)]
    for number, file in enumerate(files[:2]):
        layer.kernel.assign(np.full((3, 2), 1.0 + number))
        model.save_weights(file)
    write_mean(files[:2], files[2])
    model.load_weights(files[2])
    assert set(np.asarray(layer.kernel, "float32").flat) == {1.5}


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, small_disk):
    file = tmp_path / "mean.weights.h5"
    file.write_text("old")
    with pytest.raises(OSError) as info, written_weights(file) as weights:
        weights["large"] = np.ones(1_000)
    assert info.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert file.read_text() == "old"


def test_too_little_room_is_seen_before_anything_is_written(
    model, tmp_path, small_disk
):
    with pytest.raises(OSError) as info:
        check_room(tmp_path, model.variables)
    assert info.value.errno == errno.EFBIG
    assert not list(tmp_path.iterdir())


def test_rounded_weights_take_half_of_the_space(model, file):
    before = [weight.numpy() for weight in model.weights]
    size = file.stat().st_size
    round_weights(file, "float16")
    model.set_weights([np.zeros_like(weight) for weight in before])
    load_weights(model, file)
    for weight, expected in zip(model.weights, before, strict=True):
        rounded = expected.astype("float16").astype("float32")
        np.testing.assert_array_equal(weight, rounded)
    with opened_weights(file) as weights:
        assert weights[ARRAY].dtype == "float16"
    assert file.stat().st_size < size


def test_a_value_that_float16_lacks_is_refused(model, file):
    model.set_weights([weight.numpy() + 1e5 for weight in model.weights])
    model.save_weights(file)
    before = file.read_bytes()
    with pytest.raises(UserError, match=r"float16 cannot hold.*1e\+05"):
        round_weights(file, "float16")
    assert file.read_bytes() == before
