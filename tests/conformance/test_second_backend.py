"""A model saved on TensorFlow does the same on JAX, and trains there."""

import importlib.util
import json
import os
from pathlib import Path

import catalog
import numpy as np
import pytest
from forked_processes import run_forked
from second_backend import WITH_OPTIONS, train_with_options
from shared_models import entry_named, shared_graph, shared_model

pytestmark = pytest.mark.thorough

# Slow here: its layers are proven one by one, and its backbone by
# `conv_seq2seq_tiny`.
SLOW = "dense, summaries, other widths, every slot"


def on_jax(folder, *part):
    """What the program of this part alone finds in the folder."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed; install the extra `jax`.")
    script = Path(__file__).with_name("second_backend.py")
    result = run_forked(
        [script, folder, *part],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        timeout=500,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["backend"] == "jax"
    return found


def test_a_layer_gives_the_same(layer_entry, tmp_path):
    model = layer_entry.functional()
    model.save(tmp_path / "layer.keras")
    np.save(tmp_path / "layer.npy", model(layer_entry.example()))
    found = on_jax(tmp_path, "layer", layer_entry.name)
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            entry,
            id=catalog.identify(entry),
            marks=pytest.mark.slow
            if entry.mark == "slow" or entry.name == SLOW
            else (),
        )
        for entry in catalog.MODELS
    ],
)
def test_a_model_gives_the_same_and_trains(entry, tmp_path):
    shared_model(entry.name).save(tmp_path / "model.keras")
    inputs, _ = entry.example()
    np.save(tmp_path / "model.npy", shared_graph(entry.name)(inputs))
    found = on_jax(tmp_path, "model", entry.name)
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5
    assert found["step by step"] < 1e-5
    assert found["loss is finite"]
    assert found["compilations"] == 1
    assert found["weights that stood still"] == []


def test_training_with_every_option_makes_the_same_updates(tmp_path):
    entry = entry_named(WITH_OPTIONS)
    weights = shared_model(entry.name).get_weights()
    # Operation by operation, so that nothing needs to be traced.
    losses, trained = train_with_options(entry, weights, run_eagerly=True)
    np.savez(tmp_path / "options.npz", losses, *weights, *trained)
    found = on_jax(tmp_path, "options")
    assert found["losses"] < 1e-4
    assert found["weights"] < 1e-5
    assert "`metrics` is not supported" in found["refused"]


def test_two_devices_train_resume_and_translate_as_one(tmp_path):
    found = on_jax(tmp_path, "devices")
    assert found["devices"] == [1, 2]
    assert found["resumed"]
    assert found["losses"] < 1e-5
    assert found["weights"] < 1e-6
    assert found["same translations"]
    assert found["losses in parts"] < 1e-5
    assert found["weights in parts"] < 1e-6
    # Blocks that are computed again have the same dropout.
    assert found["recomputed weights"] < 1e-6
