"""Prototype layers: stored as configuration, cloned where they are used."""

import keras


def prototype_config(layer):
    """Turns a layer given as an argument into a plain configuration.

    A model that takes a layer for a slot must not track or build it: it keeps
    the configuration and makes one fresh clone per place.

    Args:
        layer: unbuilt `keras.layers.Layer`, its serialized configuration
            (as found in a saved model), or `None`.

    Returns:
        Dict that `keras.saving.deserialize_keras_object` understands, or
        `None`.

    Raises:
        ValueError: if `layer` is not a layer, or already has weights.

    Example:
    >>> prototype_config(keras.layers.Dense(3))["class_name"]
    'Dense'
    """
    if layer is None or isinstance(layer, dict):
        return layer
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "A slot takes a `keras.layers.Layer` or None. "
            f"Received: {layer!r} of type {type(layer).__name__}."
        )
    if layer.weights:
        raise ValueError(
            "A slot takes an unbuilt layer: it is cloned, its weights would "
            f"be lost. Received: {layer.name} with {len(layer.weights)} "
            "weights. Pass a new instance."
        )
    return keras.saving.serialize_keras_object(layer)


def prototype_of(config):
    """Makes the layer that a slot was given, to ask it what it is.

    Args:
        config: dict from `prototype_config`, or `None`.

    Returns:
        An unbuilt `keras.layers.Layer`, or `None`.

    Example:
    >>> prototype_of(prototype_config(keras.layers.Dense(3))).units
    3
    """
    if config is None:
        return None
    return keras.saving.deserialize_keras_object(config)


def clone_prototype(config, name, dtype, **options):
    """Makes a fresh, named layer from a prototype's configuration.

    Args:
        config: dict from `prototype_config`.
        name: str. Name of the clone.
        dtype: dtype policy for the clone, unless the prototype was given one
            that differs from the global policy.
        **options: entries of the clone's configuration to replace, each where
            the layer has it.

    Returns:
        An unbuilt `keras.layers.Layer`.

    Example:
    >>> config = prototype_config(keras.layers.Dense(3))
    >>> clone_prototype(config, "block_1", "float32").name
    'block_1'
    """
    layer = prototype_of(config)
    layer_config = {**layer.get_config(), "name": name}
    if layer.dtype_policy.name == keras.config.dtype_policy().name:
        layer_config["dtype"] = dtype
    layer_config |= {
        key: value for key, value in options.items() if key in layer_config
    }
    return type(layer).from_config(layer_config)
