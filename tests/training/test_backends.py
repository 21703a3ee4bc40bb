"""What must be true of training on two devices and on JAX.

* the factor on the rate acts in the compiled step, and is saved
* Muon goes on from a checkpoint
* each update has its own temperature
* the average of the weights is the moving average of the weights after each
  update, and training is that of an optimizer without one, bit by bit
"""

from pathlib import Path

import numpy as np
import pytest
from backend_program import BACKENDS, found_by

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=BACKENDS, ids="-".join)
def found(request):
    """What one process for all tests finds."""
    script = Path(__file__).with_name("training_on_backends.py")
    return found_by(script, *request.param)


def test_the_factor_acts_in_the_compiled_step_and_is_saved(found):
    rate = found["rate"]
    # A rise over two updates to 0.5, and a factor of 1/4 after the first.
    np.testing.assert_allclose(rate["moves"], [0.25, 0.125, 0.125, 0.125])
    np.testing.assert_allclose(rate["restored"], [0.125])
    np.testing.assert_allclose(rate["loaded"], [0.125])
    assert rate["rate"] == 0.125


def test_muon_goes_on_from_a_checkpoint(found):
    kinds = [found["muon"][name] for name in ("saved", "last", "resumed")]
    for saved, last, resumed in zip(*kinds, strict=True):
        np.testing.assert_allclose(resumed, last, atol=1e-6)
        # Far more than the tolerance: there were updates to repeat.
        assert np.abs(np.array(last) - saved).max() > 0.05


def test_each_update_has_its_own_temperature(found):
    expected = [max(0.1, 5.0 * 0.5**step) for step in range(16)]
    temperatures = found["temperatures"]
    np.testing.assert_allclose(temperatures["losses"], expected, atol=2e-4)
    np.testing.assert_allclose(temperatures["last"], [0.1, 0.1])


def test_averages_are_moving_averages_and_leave_training_alone(found):
    averages = found["averages"]
    assert averages["averages"] < 1e-6 and averages["validation"] < 1e-6
    assert averages["distance"] > 1e-3
    same = ("raw", "raw after", "resumed", "resumed loss")
    assert {name: averages[name] for name in same} == dict.fromkeys(same, 0.0)
