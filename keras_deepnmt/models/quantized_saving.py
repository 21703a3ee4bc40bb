"""Refuses files of quantized models that could not be loaded again."""

import keras

WEIGHTS_FILE = (
    "Save the weights with `save_weights`, and load them into a model made and "
    "quantized in the same way; or save the model before `quantize`."
)


def check_preset(model):
    """Raises a `ValueError` if a model is quantized.

    keras-hub would write a preset that it cannot load.
    """
    if modes := quantization_modes(model):
        raise ValueError(
            "A preset must hold weights that are not quantized. Received: a "
            f"model with {' and '.join(modes)} weights. {WEIGHTS_FILE}"
        )


def check_keras_file(model):
    """Raises a `ValueError` for weights that a `.keras` file does not keep.

    A model of this package with int4 weights has other scores when Keras has
    loaded it, and one that was loaded with int8 weights cannot be saved once
    more.
    """
    modes = quantization_modes(model)
    if "int4" in modes or ("int8" in modes and _is_loaded(model)):
        origin = "a loaded model" if _is_loaded(model) else "a model"
        raise ValueError(
            "A `.keras` file must hold weights that Keras can load again: not "
            "int4, and int8 only of a model that was quantized and not loaded. "
            f"Received: {origin} with {' and '.join(modes)} weights. "
            f"{WEIGHTS_FILE}"
        )


def quantization_modes(model):
    """Returns the sorted names of the quantizations of a model's layers."""
    policy = keras.dtype_policies.deserialize(model.get_config()["dtype"])
    if not isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return []
    modes = {layer_policy.quantization_mode for layer_policy in policy.values()}
    return sorted(modes - {None})


def _is_loaded(model):
    # `quantize` changes the policies of layers, loading also the model's own.
    return isinstance(model.dtype_policy, keras.dtype_policies.DTypePolicyMap)
