"""Layers in slots that are given by name, as in a recipe."""

import inspect

import keras

import keras_deepnmt.layers
from keras_deepnmt.layers.cloning import prototype_config
from keras_deepnmt.own_code.lookup import find_own, name_and_options, own_names
from keras_deepnmt.suggestions import did_you_mean, nearest_name

# The slots of all models, and the purpose of the layer in each.
_EMBEDDINGS = "transforms the word embeddings of one side"
_SELF_ATTENTION = "replaces multi-head self-attention in each block"
_AGGREGATION = "combines the outputs of all blocks of a stack"
SLOT_PURPOSES = {
    "source_embedding_layer": _EMBEDDINGS,
    "target_embedding_layer": _EMBEDDINGS,
    "encoder_self_attention": _SELF_ATTENTION,
    "decoder_self_attention": _SELF_ATTENTION,
    "decoder_cross_attention": "replaces the attention to the source",
    "encoder_aggregation": _AGGREGATION,
    "decoder_aggregation": _AGGREGATION,
    "encoder_fusion": "gives each decoder block a mixture of encoder states",
    "output_fusion": "fuses the prediction with one from source embeddings",
    "layer_diversity": "adds a loss that makes adjacent layers differ",
    "residual_connection": "joins the input and output of each sub-layer",
    "layer_drop": "lets training skip a block",
}


def _fitting_layers(slot):
    """The names of the layers whose attribute `slots` has a slot."""
    return tuple(
        name
        for name, layer in sorted(vars(keras_deepnmt.layers).items())
        if inspect.isclass(layer) and slot in vars(layer).get("slots", ())
    )


SLOT_LAYERS = {slot: _fitting_layers(slot) for slot in SLOT_PURPOSES}
# No slot: a model does not try other layers there.
POSITION_LAYERS = _fitting_layers("position_encoding")
# Arguments of a layer that are layers themselves.
_INNER_SLOTS = {
    "attention": SLOT_LAYERS["encoder_self_attention"],
    "relative_position": POSITION_LAYERS,
}
_OF_EVERY_LAYER = ("name", "dtype", "trainable")


def fitting_classes(slot):
    """Returns the layers of this package for a slot."""
    return [getattr(keras_deepnmt.layers, name) for name in SLOT_LAYERS[slot]]


def nearest_layer(slot, kind):
    """Returns the name of the layer for a slot that is most like a class.

    It is a base class of `kind`, else one of a similar name, else the plainest,
    which is derived from the fewest others and fits the most slots.
    """
    fitting, classes = SLOT_LAYERS[slot], fitting_classes(slot)
    for base in kind.__mro__:
        if base in classes:
            return base.__name__
    plainest = min(classes, key=lambda c: (len(c.__mro__), -len(c.slots)))
    return nearest_name(kind.__name__, fitting, cutoff=0.8) or plainest.__name__


def slot_config(arguments, slot, fitting=None):
    """Returns the configuration of the layer in a slot, or `None`.

    `arguments` are those of the model. The slot holds an unbuilt layer, its
    Keras configuration, or a layer by its class name, as a recipe gives it:
    `"LayerAggregation"`, `{"LayerAggregation": {"strategy": "dense"}}` or
    `{"class_name": "LayerAggregation", "config": {"strategy": "dense"}}`.
    Required arguments of such a layer that are missing are the model's.
    `fitting` names the layers of this package for an argument that is no slot.

    Raises a `ValueError` if there is no such layer, if it does not fit the
    slot, or if it rejects an argument.
    """
    value = arguments[slot]
    if _is_complete(value):
        return value
    is_class = inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    if value is None or is_class or isinstance(value, keras.layers.Layer):
        try:
            return prototype_config(value)
        except ValueError as error:
            raise ValueError(f"`{slot}`: {error}") from error
    fitting = fitting or SLOT_LAYERS[slot]
    return prototype_config(_make(slot, value, fitting, arguments))


def _is_complete(value):
    """Whether a value is a configuration that Keras wrote."""
    return isinstance(value, dict) and bool(
        {"registered_name", "module"} & set(value)
    )


def _make(slot, value, fitting, arguments):
    """Makes the unbuilt layer that `value` names for a slot."""
    name, options = _read(slot, value, fitting)
    kind = _find_class(slot, name, fitting)
    parameters = inspect.signature(kind).parameters
    known = [
        *(key for key in parameters if key != "kwargs"),
        *_OF_EVERY_LAYER,
    ]
    for key in options:
        if key not in known:
            hint = did_you_mean(key, known, "`")
            hint = hint or f" It has: {', '.join(known)}."
            raise ValueError(
                f"`{slot}`: `{key}` is not an argument of {name}.{hint}"
            )
    options = _inherited(slot, parameters, arguments) | {
        key: _inner_layer(f"{slot}.{key}", value, _INNER_SLOTS[key], arguments)
        if key in _INNER_SLOTS
        else value
        for key, value in options.items()
    }
    missing = [
        f"`{key}`"
        for key, parameter in parameters.items()
        if _is_required(parameter) and key not in options
    ]
    if missing:
        raise ValueError(f"`{slot}`: {name} needs {', '.join(missing)}.")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{slot}`: {name}: {error}") from error


def _inner_layer(place, value, fitting, arguments):
    is_layer = isinstance(value, keras.layers.Layer)
    if value is None or is_layer or _is_complete(value):
        return value
    return _make(place, value, fitting, arguments)


def _read(slot, value, fitting):
    """Returns the class name and the arguments that a value gives."""
    try:
        name, options = name_and_options(value)
    except ValueError as error:
        raise ValueError(
            f"`{slot}` must be a layer, its class name, {{class name: "
            "{argument: value}}, or None. "
            f"Received: {slot}={value!r}. {_remedy(fitting)}"
        ) from error
    return name.removeprefix("keras_deepnmt>"), options


def _find_class(slot, name, fitting):
    try:
        own = find_own(name, keras.layers.Layer, vars(keras_deepnmt.layers))
    except ValueError as error:
        raise ValueError(f"`{slot}`: {error} {_remedy(fitting)}") from error
    if own is None and name in fitting:
        return getattr(keras_deepnmt.layers, name)
    own = own or _registered_layer(name)
    if own is not None:
        slots = vars(own).get("slots", (slot,))
        if slot in slots or "." in slot:
            return own
        raise ValueError(
            f"`{slot}`: {name} is for other slots: {', '.join(slots)}. "
            f"{_remedy(fitting)}"
        )
    fitting = (*fitting, *own_names(keras.layers.Layer))
    if hint := did_you_mean(name, fitting):
        raise ValueError(
            f'`{slot}`: there is no layer "{name}".{hint} {_remedy(fitting)}'
        )
    exists = hasattr(keras_deepnmt.layers, name)
    problem = "does not fit this slot" if exists else "is not a layer"
    raise ValueError(f'`{slot}`: "{name}" {problem}. {_remedy(fitting)}')


def _registered_layer(name):
    """A layer that the program of the user registered with Keras."""
    kind = keras.saving.get_registered_object(name)
    if not (inspect.isclass(kind) and issubclass(kind, keras.layers.Layer)):
        return None
    is_of_package = keras.saving.get_registered_name(kind).startswith(
        "keras_deepnmt>"
    )
    return None if is_of_package else kind


def _remedy(fitting):
    return f"Layers for this slot: {', '.join(fitting)}."


def _inherited(slot, parameters, arguments):
    """Returns the options that a layer takes from its model and its slot."""
    options = {
        key: arguments[key]
        for key, parameter in parameters.items()
        if _is_required(parameter) and key in arguments
    }
    if slot == "target_embedding_layer" and "bidirectional" in parameters:
        options["bidirectional"] = False  # later words are not known yet
    return options


def _is_required(parameter):
    return (
        parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    )
