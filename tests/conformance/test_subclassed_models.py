"""Inside a subclassed model a layer starts with the same weights."""

import keras
import numpy as np


class Wrapper(keras.Model):
    """Calls one layer; Keras builds it while it traces this model's call."""

    def __init__(self, entry):
        super().__init__()
        self.layer = entry.make()
        self.arguments = entry.arguments

    def call(self, inputs):
        return self.layer(**inputs, **self.arguments)


def initial_weights(layer):
    """The weights by their places in the layer."""
    # Random states are drawn anew for each layer.
    return {
        weight.path.partition(f"{layer.name}/")[2]: np.asarray(weight)
        for weight in layer.weights
        if weight.name != "seed_generator_state"
    }


def test_a_layer_starts_with_the_same_weights(layer_entry):
    inputs = layer_entry.example()
    keras.utils.set_random_seed(1)
    direct = layer_entry.make()
    direct(**inputs, **layer_entry.arguments)
    keras.utils.set_random_seed(1)
    wrapper = Wrapper(layer_entry)
    wrapper(inputs)
    expected = initial_weights(direct)
    found = initial_weights(wrapper.layer)
    assert set(found) == set(expected)
    for path, value in expected.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)
