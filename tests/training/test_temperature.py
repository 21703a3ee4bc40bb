"""What must be true of TemperatureDecay.

* it is 5 at first, above 0.5 after 4604 updates and 0.5 from 4605 on
* a model without a temperature is refused
"""

import keras
import numpy as np
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.training.temperature import TemperatureDecay


def test_is_the_schedule_of_role_interaction():
    decay = TemperatureDecay()
    assert decay.temperature(0) == 5.0
    np.testing.assert_allclose(decay.temperature(1000), 5 * 0.9995**1000)
    assert decay.temperature(4604) > 0.5
    assert decay.temperature(4605) == decay.temperature(100_000) == 0.5


def test_a_model_without_a_temperature_is_refused():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    ones = np.ones((3, 2)), np.ones((3, 1))
    with pytest.raises(UserError, match="which has none. Leave"):
        model.fit(*ones, callbacks=[TemperatureDecay()], verbose=0)


@pytest.mark.parametrize(
    "options", [{"start": 0.1}, {"minimum": 0.0}, {"factor": 1.0}]
)
def test_refuses_what_does_not_fall(options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name}={value}"):
        TemperatureDecay(**options)
