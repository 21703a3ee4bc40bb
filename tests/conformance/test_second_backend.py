"""What was saved on TensorFlow does the same on JAX, and trains there."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import catalog
import numpy as np
import pytest
from second_backend import WITH_OPTIONS, train_with_options
from shared_models import entry_named, shared_graph, shared_model

# The first test waits for the whole program.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the other backend gave: for slow models, or for all the others."""

    @functools.cache
    def results_of(slow):
        return run_on_jax(tmp_path_factory.mktemp("second_backend"), slow)

    return results_of


def run_on_jax(folder, slow):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed; install the extra `jax`.")
    for number, entry in enumerate([] if slow else catalog.LAYERS):
        model = entry.functional()
        model.save(folder / f"layer_{number}.keras")
        np.save(folder / f"layer_{number}.npy", model(entry.example()))
    for number, entry in enumerate(catalog.models_proven(slow)):
        shared_model(entry.name).save(folder / f"model_{number}.keras")
        inputs, _ = entry.example()
        scores = shared_graph(entry.name)(inputs)
        np.save(folder / f"model_{number}.npy", scores)
    if not slow:
        entry = entry_named(WITH_OPTIONS)
        weights = shared_model(entry.name).get_weights()
        losses, trained = train_with_options(entry, weights)
        np.savez(folder / "options.npz", losses, *trained)
    script = Path(__file__).with_name("second_backend.py")
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": os.pathsep.join([str(script.parents[2]), *sys.path]),
    }
    result = subprocess.run(
        [sys.executable, script, folder, "slow" if slow else ""],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000 if slow else 1200,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_it_is_another_backend(results):
    assert results(False)["backend"] == "jax"


def test_a_layer_gives_the_same(results, layer_entry):
    found = results(False)[layer_entry.name]
    assert "failed" not in found, found["failed"]
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5


def test_a_model_gives_the_same_and_trains(results, model_entry):
    found = results(model_entry.mark == "slow")[model_entry.name]
    assert "failed" not in found, found["failed"]
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5
    assert found["step by step"] < 1e-5
    assert found["loss is finite"]
    assert found["compilations"] == 1
    assert found["weights that stood still"] == []


def test_training_with_every_option_makes_the_same_updates(results):
    found = results(False)["options"]
    assert found["losses"] < 1e-4
    assert found["weights"] < 1e-5
    assert "`metrics` is not supported" in found["refused"]


def test_two_devices_train_resume_and_translate_as_one(results):
    found = results(False)["data parallel"]
    assert found["devices"] == [1, 2]
    assert found["resumed"]
    assert found["losses"] < 1e-5
    assert found["weights"] < 1e-6
    assert found["same translations"]
    assert found["losses in parts"] < 1e-5
    assert found["weights in parts"] < 1e-6
