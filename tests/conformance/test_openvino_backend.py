"""On the OpenVINO backend models predict the same as on TensorFlow."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from digit_run import environment
from openvino_backend import predictions

PROGRAM = Path(__file__).with_name("openvino_backend.py")


# Too large for [dev], for one test.
@pytest.mark.thorough
@pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None,
    reason="OpenVINO is not installed: pip install openvino.",
)
def test_predictions_are_those_of_tensorflow(tmp_path):
    file = tmp_path / "results.npz"
    paths = ":".join(path for path in sys.path if path)
    environ = {**environment(KERAS_BACKEND="openvino"), "PYTHONPATH": paths}
    subprocess.run([sys.executable, PROGRAM, file], env=environ, check=True)
    found = np.load(file)
    for name, expected in predictions().items():
        # OpenVINO computes in bfloat16 where the processor can.
        tolerance = 0.02 * np.abs(expected).max()
        np.testing.assert_allclose(
            found[name], expected, rtol=0, atol=tolerance, err_msg=name
        )
