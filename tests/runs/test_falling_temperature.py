"""What must be true of runs whose temperature falls.

* each update has the temperature of its number, also over a restart
* a model without a temperature is refused in one line
* a temperature that will not fall is warned of, once, with the remedy
"""

import functools

import keras
import numpy as np
import pytest
from broken_runs import checkpoint, fails_at
from keras import ops

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs import build

FALLING = {
    "training.temperature.start": 4.0,
    "training.temperature.factor": 0.5,
    "training.temperature.minimum": 0.3,
}


@keras.saving.register_keras_serializable(package="falling_temperature")
class SoftenedEmbedding(keras.layers.Layer):
    """Embedding slot: divides by the temperature."""

    def build(self, inputs_shape):
        self.temperature = self.add_weight(
            name="temperature", shape=(), initializer="ones", trainable=False
        )

    def call(self, inputs, padding_mask=None):
        return inputs / ops.cast(self.temperature, inputs.dtype)


@pytest.fixture
def with_temperature(monkeypatch):
    """Builds models with a layer that has a temperature."""
    create = functools.partial(
        build.create_model, source_embedding_layer=SoftenedEmbedding()
    )
    monkeypatch.setattr(build, "create_model", create)


def temperature(run_dir, step):
    saved = checkpoint(run_dir, step)
    return saved["layers/softened_embedding/vars/0"].item()


def assert_it_falls(run_dir):
    found = [temperature(run_dir, step) for step in range(1, 7)]
    np.testing.assert_allclose(found, [4.0, 2.0, 1.0, 0.5, 0.3, 0.3])


@pytest.mark.thorough
def test_the_temperature_falls_with_the_updates(
    with_temperature, train_in, without_search, tmp_path
):
    train_in({**FALLING, "training.average_checkpoints": 5})
    assert_it_falls(tmp_path / "run")


@pytest.mark.thorough
def test_the_temperature_falls_over_a_restart_as_without_one(
    with_temperature, train_in, without_search, tmp_path, monkeypatch
):
    folder = tmp_path / "run"
    changes = {**FALLING, "training.average_checkpoints": 5}
    fails_at(monkeypatch, 2, KeyboardInterrupt())
    fails_at(monkeypatch, 5, RuntimeError("killed"))
    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error):
            train_in(changes)
    train_in(changes)
    assert_it_falls(folder)
    broken = checkpoint(folder, 6)
    folder.rename(tmp_path / "broken")
    train_in(changes)
    for name, value in checkpoint(folder, 6).items():
        np.testing.assert_array_equal(value, broken[name], err_msg=name)


def test_a_model_without_a_temperature_is_refused(train_in, tmp_path):
    with pytest.raises(UserError, match="Leave `training.temperature`") as info:
        train_in(FALLING)
    assert "\n" not in str(info.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_a_temperature_that_does_not_fall_is_warned_of_once(
    with_temperature, train_in, without_search, tmp_path, caplog
):
    short = {"training.steps": 2, "training.validate_every": 1}
    train_in(short)
    said = caplog.text
    assert said.count("the temperature of relaxed samples stays 1") == 1
    assert "add `training.temperature: {}`" in said
    # The remedy, as it is written there.
    (tmp_path / "run").rename(tmp_path / "constant")
    caplog.clear()
    train_in({**short, "training.temperature": {}})
    assert "temperature" not in caplog.text
    assert temperature(tmp_path / "run", 2) == pytest.approx(5 * 0.9995)


def test_a_temperature_that_would_rise_is_refused(recipe_file):
    with pytest.raises(UserError, match="`minimum` must be at most"):
        load_recipe(recipe_file, {"training.temperature.start": 0.1})
