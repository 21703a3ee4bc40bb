"""Options of the layers that a preset puts into the slots of its model."""

import keras

from keras_deepnmt.layers.cloning import prototype_of

# Arguments of a model that are passed on to layers in its slots that have them.
FOLLOWED = ("attention_dropout", "key_bias", "layer_norm_epsilon", "activation")
# Arguments of layers that are layers themselves.
_LAYERS = ("attention", "output_projection", "relative_position")
# Arguments that a model sets when it clones a layer.
_SET_BY_MODEL = (
    "name",
    "trainable",
    "dtype",
    "reduction",
    "positions",
    "stack",
)


def slot_options(slots):
    """Returns the names of all options of the layers in a dict of slots."""
    names = set()
    for layer in slots.values():
        if isinstance(layer, keras.layers.Layer):
            names |= set(_options(layer))
            names |= slot_options(_nested(layer))
    return names


def with_slot_options(slots, options):
    """Returns a dict of slots whose layers have the given options.

    An option is set in every layer that has it, including layers inside other
    layers.
    """
    return {slot: _with_options(slots[slot], options) for slot in slots}


def _with_options(layer, options):
    if not isinstance(layer, keras.layers.Layer):
        return layer
    nested = with_slot_options(_nested(layer), options)
    own = _options(layer)
    changed = {name: options[name] for name in options if name in own}
    if not changed and not nested:
        return layer
    return type(layer)(**{**own, **nested, **changed})


def _options(layer):
    """Returns the constructor arguments of a layer that a user may choose."""
    config = layer.get_config()
    # Without a number of layers, an aggregation takes the model's.
    unset = {"num_layers"} if config.get("num_layers", 0) is None else set()
    return {
        name: value
        for name, value in config.items()
        if name not in _SET_BY_MODEL and name not in unset
    }


def _nested(layer):
    """Returns the unbuilt layers that a layer has as arguments, by name."""
    return {
        name: prototype_of(value)
        for name, value in layer.get_config().items()
        if name in _LAYERS and value is not None
    }
