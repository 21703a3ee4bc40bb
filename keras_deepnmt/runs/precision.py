"""Chooses the data type in which this machine trains fastest."""

import keras

from keras_deepnmt.xla.processor import multiplies_bfloat16

# GPUs of this compute capability and later multiply bfloat16 (Ampere, 2020).
_AMPERE = (8, 0)


def fastest_precision() -> tuple[str, str]:
    """Finds the value that `training.precision: auto` has on this machine.

    It is `mixed_bfloat16` where products in bfloat16 are faster than in
    float32: on GPUs since Ampere, and with TensorFlow on processors with
    instructions for them (AVX512-BF16, AMX). Otherwise it is `float32`. Also
    returns the reason in a few words.
    """
    if keras.config.backend() == "tensorflow":
        return _on_tensorflow()
    return _on_jax()


def _on_tensorflow():
    import tensorflow as tf

    from keras_deepnmt.xla.autoclustering import REASON, clusters_are_compiled

    details = [
        tf.config.experimental.get_device_details(gpu)
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    if details:
        capabilities = [d.get("compute_capability", _AMPERE) for d in details]
        return _of_gpus(min(capabilities))
    if not multiplies_bfloat16():
        return "float32", "this processor has no instructions for bfloat16"
    if not clusters_are_compiled():
        return "float32", REASON
    return "mixed_bfloat16", "this processor has instructions for it"


def _on_jax():
    import jax

    if jax.default_backend() != "gpu":
        return "float32", f"{jax.default_backend()} with JAX"
    capabilities = [
        tuple(map(int, device.compute_capability.split(".")))
        for device in jax.devices()
    ]
    return _of_gpus(min(capabilities))


def _of_gpus(capability):
    number = ".".join(map(str, capability))
    if tuple(capability) < _AMPERE:
        return "float32", f"a GPU of compute capability {number}"
    return "mixed_bfloat16", f"GPUs of compute capability {number} or more"
