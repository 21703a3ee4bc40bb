"""On the torch backend layers, models and searches do the same as on
TensorFlow; training is refused there in a sentence."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from digit_run import environment
from torch_backend import forward_results

from keras_deepnmt.errors import UserError
from keras_deepnmt.models.training_step import keras_arguments

PROGRAM = Path(__file__).with_name("torch_backend.py")
REFUSAL = "Received: KERAS_BACKEND=torch, on which models only run forward."


# Too large for [dev]; CONTRIBUTING.md says how to run it.
@pytest.mark.thorough
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed; see CONTRIBUTING.md.",
)
def test_forward_results_are_those_of_tensorflow(tmp_path):
    file = tmp_path / "results.npz"
    process = subprocess.Popen(
        [sys.executable, PROGRAM, file],
        env={**environment(KERAS_BACKEND="torch"), "PYTHONPATH": _paths()},
        stdout=subprocess.PIPE,
        text=True,
    )
    expected = forward_results()
    printed, _ = process.communicate(timeout=500)
    assert process.returncode == 0
    assert printed.count(REFUSAL) == 3, printed
    found = np.load(file)
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(
            found[name], expected[name], atol=1e-4, err_msg=name
        )


def _paths():
    return ":".join(path for path in sys.path if path)


def test_training_on_torch_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr("keras.config.backend", lambda: "torch")
    with pytest.raises(UserError, match=REFUSAL) as info:
        keras_arguments.check_training_backend()
    assert "\n" not in str(info.value)
    assert str(info.value).endswith("the same weights can be used.")
