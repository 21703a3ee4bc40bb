"""A model saved on TensorFlow does the same on JAX, and trains there."""

import functools
import importlib.util
import json
import os
import signal
from pathlib import Path

import catalog
import numpy as np
import pytest
from forked_processes import ForkedProcess
from second_backend import WITH_OPTIONS, models_of, train_with_options
from shared_models import entry_named, shared_graph, shared_model

# The first test waits for a whole program.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """`results(part)`: results of the other backend for `layers`, `models`, or
    the slow models, `slow`.

    The parts are programs that run side by side.
    """
    programs = {}

    @functools.cache
    def results_of(part):
        if importlib.util.find_spec("jax") is None:
            pytest.skip("JAX is not installed; install the extra `jax`.")
        if part == "slow":
            folder = tmp_path_factory.mktemp("slow")
            save_models(folder, "slow")
            programs["slow"] = start(folder, "slow")
        elif part not in programs:
            folder = tmp_path_factory.mktemp("second_backend")
            save_layers(folder)
            programs["layers"] = start(folder, "layers")
            # While the layers are checked.
            save_models(folder, "models")
            save_options(folder)
            programs["models"] = start(folder, "models")
        return finish(*programs[part])

    yield results_of
    for process, _ in programs.values():
        process.send_signal(signal.SIGKILL)
        process.wait()


def save_layers(folder):
    for number, entry in enumerate(catalog.LAYERS):
        model = entry.functional()
        model.save(folder / f"layer_{number}.keras")
        np.save(folder / f"layer_{number}.npy", model(entry.example()))


def save_models(folder, part):
    for number, entry in enumerate(models_of(part)):
        shared_model(entry.name).save(folder / f"model_{number}.keras")
        inputs, _ = entry.example()
        scores = shared_graph(entry.name)(inputs)
        np.save(folder / f"model_{number}.npy", scores)


def save_options(folder):
    entry = entry_named(WITH_OPTIONS)
    weights = shared_model(entry.name).get_weights()
    # Operation by operation, so that nothing needs to be traced.
    losses, trained = train_with_options(entry, weights, run_eagerly=True)
    np.savez(folder / "options.npz", losses, *weights, *trained)


def start(folder, part):
    """Starts the program of one part; its output goes to files."""
    script = Path(__file__).with_name("second_backend.py")
    output = folder / part
    with (
        output.with_suffix(".out").open("w") as stdout,
        output.with_suffix(".err").open("w") as stderr,
    ):
        process = ForkedProcess(
            [script, folder, part],
            env={**os.environ, "KERAS_BACKEND": "jax"},
            stdout=stdout,
            stderr=stderr,
        )
    return process, output


def finish(process, output):
    """Waits for a program; returns its results."""
    code = process.wait(timeout=3000 if output.name == "slow" else 1200)
    assert code == 0, output.with_suffix(".err").read_text()[-3000:]
    return json.loads(output.with_suffix(".out").read_text().splitlines()[-1])


def test_it_is_another_backend(results):
    assert results("layers")["backend"] == "jax"
    assert results("models")["backend"] == "jax"


def test_a_layer_gives_the_same(results, layer_entry):
    found = results("layers")[layer_entry.name]
    assert "failed" not in found, found["failed"]
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        pytest.param(
            *(part, entry),
            id=catalog.identify(entry),
            marks=pytest.mark.slow if part == "slow" else (),
        )
        for part in ("models", "slow")
        for entry in models_of(part)
    ],
)
def test_a_model_gives_the_same_and_trains(results, part, entry):
    found = results(part)[entry.name]
    assert "failed" not in found, found["failed"]
    assert found["other backend"] < 1e-4
    assert found["compiled"] < 1e-5
    assert found["step by step"] < 1e-5
    assert found["loss is finite"]
    assert found["compilations"] == 1
    assert found["weights that stood still"] == []


def test_training_with_every_option_makes_the_same_updates(results):
    found = results("models")["options"]
    assert found["losses"] < 1e-4
    assert found["weights"] < 1e-5
    assert "`metrics` is not supported" in found["refused"]


def test_two_devices_train_resume_and_translate_as_one(results):
    found = results("layers")["data parallel"]
    assert found["devices"] == [1, 2]
    assert found["resumed"]
    assert found["losses"] < 1e-5
    assert found["weights"] < 1e-6
    assert found["same translations"]
    assert found["losses in parts"] < 1e-5
    assert found["weights in parts"] < 1e-6


def test_blocks_that_are_recomputed_have_the_same_dropout(results):
    assert results("layers")["data parallel"]["recomputed weights"] < 1e-6
