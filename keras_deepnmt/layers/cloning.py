"""Prototype layers: kept as configurations, cloned where they are used."""

import inspect

import keras


def initializer_config(initializer, name="attention_initializer"):
    """Serializes an initializer, the argument `name` of a layer or model.

    It is `None`, anything that `keras.initializers.get` takes, or one of this
    package by its class name, as `"DepthScaledInitializer"` or, with its
    arguments, `{"DepthScaledInitializer": {"alpha": 0.5}}`. A function is
    returned as it is: Keras finds it by its name only if it is registered.
    Raises a `ValueError` for other values.
    """
    try:
        found = keras.initializers.get(_named_initializer(initializer))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be a Keras initializer or its name, such as "
            f'"glorot_uniform", or None. Received: {name}={initializer!r}.'
        ) from error
    if isinstance(found, keras.initializers.Initializer):
        return keras.initializers.serialize(found)
    return found


def clone_initializer(initializer):
    """Returns an initializer that draws other values, unless it has a seed.

    A function that serves as an initializer cannot be cloned; it is returned.
    """
    return getattr(initializer, "clone", lambda: initializer)()


def _named_initializer(initializer):
    """Makes the initializer of this package that a recipe names, if any."""
    options = {}
    if isinstance(initializer, dict) and len(initializer) == 1:
        ((initializer, options),) = initializer.items()
    if isinstance(initializer, str):
        kind = keras.saving.get_registered_object(
            f"keras_deepnmt>{initializer}"
        )
        if isinstance(kind, type):
            if issubclass(kind, keras.initializers.Initializer):
                return kind(**options)
    return initializer


def prototype_config(layer):
    """Serializes a layer that was passed as an argument, such as a slot.

    A model must not track or build that layer: it stores the configuration
    and creates one clone for each place of use. A configuration (as read from
    a saved model) and `None` are returned unchanged. Raises a `ValueError` for
    other values, and for a layer that already has weights.
    """
    if layer is None or isinstance(layer, dict):
        return layer
    if isinstance(layer, type) and issubclass(layer, keras.layers.Layer):
        name = layer.__name__
        raise ValueError(
            f"A slot must be a layer or None. Received: {name}, a class; give "
            f"an object: {name}(...)."
        )
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "A slot must be a `keras.layers.Layer` or None. "
            f"Received: {layer!r} of type {type(layer).__name__}."
        )
    if layer.weights:
        raise ValueError(
            "A slot must be an unbuilt layer, because it is cloned without "
            f"its weights. Received: {layer.name} with {len(layer.weights)} "
            "weights. Pass a new instance."
        )
    try:
        return keras.saving.serialize_keras_object(layer)
    except NotImplementedError as error:
        raise ValueError(
            "A slot must be a layer whose `get_config` returns every argument "
            "of its constructor, because it is cloned from them. Received: "
            f"{type(layer).__name__} without a `get_config`."
        ) from error


def position_argument(layer):
    """Reads an argument `relative_position` of a layer.

    A layer that has weights is not cloned: all attentions that are given it
    use it. Returns its configuration, which gives a copy with weights of its
    own, and a function that returns what to pass on to the attentions. Keras
    would track an attribute that is the layer itself.
    """
    if isinstance(layer, keras.layers.Layer) and layer.weights:
        config = keras.saving.serialize_keras_object(layer)
        config.pop("build_config", None)
        return config, lambda: layer
    config = prototype_config(layer)
    return config, lambda: config


def prototype_of(config):
    """Creates an unbuilt layer from a configuration, to inspect its attributes.

    Returns `None` for `None`.
    """
    if config is None:
        return None
    return keras.saving.deserialize_keras_object(_without_shared_ids(config))


def prototype_name(config):
    """Returns the class name of the layer of a configuration."""
    return config["class_name"].rpartition(">")[2]


def clone_prototype(
    config,
    name,
    dtype,
    attention_initializer=None,
    relative_position=None,
    **options,
):
    """Creates a new, unbuilt layer with a name of its own from a configuration.

    The clone gets the dtype policy `dtype`, unless the prototype's policy is
    not the global one. `attention_initializer` is for attention projections
    whose initializer the prototype does not name, and `relative_position` for
    attention without a layer of relative positions, whose configuration or,
    for one that is shared, the layer itself it is. `options` replace entries
    of the configuration; those that the layer does not have are ignored.
    """
    layer = prototype_of(config)
    layer_config = {**layer.get_config(), "name": name}
    if layer.dtype_policy.name == keras.config.dtype_policy().name:
        layer_config["dtype"] = dtype
    layer_config |= {
        key: value for key, value in options.items() if key in layer_config
    }
    key = getattr(layer, "initializer_argument", "attention_initializer")
    given = {key: attention_initializer, "relative_position": relative_position}
    layer_config |= {
        key: value
        for key, value in given.items()
        if key in layer_config and layer_config[key] is None
    }
    return type(layer).from_config(_without_shared_ids(layer_config))


def check_takes_positions(attention, argument, relative_position):
    """Refuses an attention layer that cannot apply relative positions.

    `attention` is the configuration of the layer in an argument of that name,
    or `None` for an attention of this package.
    """
    if attention is None or relative_position is None:
        return
    if "relative_position" not in prototype_of(attention).get_config():
        name = prototype_name(attention)
        positions = prototype_name(relative_position)
        raise ValueError(
            f"{positions} is applied by the attention layers, and `{argument}` "
            f"holds one that has no argument `relative_position`: {name}. "
            "Derive it from keras_deepnmt.layers.MultiHeadAttention, or use "
            'positions that are added to the embeddings, such as "sinusoidal".'
        )


def _without_shared_ids(config):
    """Removes the ids by which Keras recognizes shared objects.

    While a model is loaded, Keras marks an object as shared if it has seen its
    `id` before, even as the `id` of a deleted object. A clone is never a shared
    object.
    """
    if isinstance(config, dict):
        return {
            key: _without_shared_ids(value)
            for key, value in config.items()
            if key != "shared_object_id"
        }
    if isinstance(config, list):
        return [_without_shared_ids(value) for value in config]
    return config


def build_with(layer, *shapes):
    """Builds a layer with the shapes of its inputs.

    Those that its method `build` does not take are left out, as for a layer
    that has none of its own.
    """
    parameters = inspect.signature(layer.build).parameters.values()
    if not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        shapes = shapes[: len(parameters)]
    layer.build(*shapes)
