"""Keras' and keras-hub's own tests of layers and models.

Both are private classes of these packages, imported here only. Keras' test
takes one tensor or a list of tensors, keras-hub's one or several tensors.
"""

import keras
from keras.src.testing import TestCase as KerasTestCase
from keras_hub.src.tests.test_case import TestCase as KerasHubTestCase


class _OfKeras(KerasTestCase):
    def runTest(self):
        """Needed by unittest to make the object."""


class _OfKerasHub(KerasHubTestCase):
    def runTest(self):
        """Needed by unittest to make the object."""


def run_layer_test(entry, **checks):
    """Runs the test that takes the inputs of an entry of the catalogue.

    Neither takes masks, which Keras would make of floats, or a list of tensors
    besides others; of a layer with those only the configuration is tested.
    """
    kind, options = _class_and_arguments(entry.make())
    inputs = {
        name: keras.tree.map_structure(keras.ops.convert_to_tensor, value)
        for name, value in entry.example().items()
        if "mask" not in name
    }
    if len(inputs) > 1 and any(isinstance(v, list) for v in inputs.values()):
        _OfKeras().run_class_serialization_test(kind(**options))
        return
    layer = entry.make()
    outputs = layer(**inputs, **entry.arguments)
    checks |= {
        "expected_num_trainable_weights": len(layer.trainable_weights),
        "expected_num_non_trainable_weights": len(layer.non_trainable_weights),
        "expected_num_non_trainable_variables": len(
            layer.non_trainable_variables
        ),
        "expected_output_shape": keras.tree.map_structure(
            lambda x: tuple(x.shape), outputs
        ),
    }
    if len(inputs) > 1:
        _OfKerasHub().run_layer_test(kind, options, inputs, **checks)
        return
    (value,) = inputs.values()
    _OfKeras().run_layer_test(
        kind,
        options,
        input_data=value,
        call_kwargs=entry.arguments,
        expected_output_dtype=keras.tree.map_structure(
            lambda x: keras.backend.standardize_dtype(x.dtype), outputs
        ),
        supports_masking=True,
        **checks,
    )


def run_backbone_test(entry, **checks):
    """Runs keras-hub's test of a model."""
    model = entry.make()
    kind, options = _class_and_arguments(model)
    options.pop("_", None)
    inputs, _ = entry.example()
    _OfKerasHub().run_backbone_test(
        kind,
        options,
        inputs,
        expected_output_shape=tuple(model(inputs).shape),
        **checks,
    )


def _class_and_arguments(layer):
    config = layer.get_config()
    for name in ("name", "trainable", "dtype"):
        config.pop(name, None)
    return type(layer), config
