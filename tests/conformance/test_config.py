"""The configuration holds every constructor argument and makes the same."""

import inspect
import json

import keras

FROM_KERAS = {"name", "dtype", "trainable"}


def constructor_arguments(value):
    names = set(inspect.signature(type(value).__init__).parameters)
    return names - {"self", "args", "kwargs"} - FROM_KERAS


def assert_round_trip(value):
    config = value.get_config()
    assert set(config) - FROM_KERAS == constructor_arguments(value)
    again = type(value).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    serialized = json.dumps(keras.saving.serialize_keras_object(value))
    third = keras.saving.deserialize_keras_object(json.loads(serialized))
    assert type(third) is type(value)
    assert third.get_config() == config


def test_a_layer_survives_its_configuration(layer_entry):
    assert_round_trip(layer_entry.make())
    assert_round_trip(
        layer_entry.make(name="other", dtype="mixed_bfloat16", trainable=False)
    )


def test_a_model_survives_its_configuration(model_entry):
    assert_round_trip(model_entry.make())
    assert_round_trip(model_entry.make(dtype="mixed_bfloat16"))
