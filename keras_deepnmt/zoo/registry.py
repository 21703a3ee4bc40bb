"""The registry of presets. A preset is a function, named like the preset."""

import fnmatch
import inspect
import re

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.loading import new_registry
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.zoo.slot_options import (
    FOLLOWED,
    slot_options,
    with_slot_options,
)

# Version of the presets' definitions, which runs record. It increases when a
# change of a preset changes the model that a recorded run builds.
PRESET_VERSION = 2
_PRESETS = new_registry()


def register_model(function):
    """Registers a preset under its function's name.

    The function takes `(source_vocabulary_size, target_vocabulary_size,
    **overrides)` and returns a model. It is returned unchanged. Raises a
    `ValueError` if another module has taken the name; a file of the user that
    is run again replaces its own.

    Example:
    >>> @register_model
    ... def example_tiny(source_vocabulary_size, target_vocabulary_size):
    ...     return None
    >>> del _PRESETS["example_tiny"]
    """
    name = function.__name__
    owner = _PRESETS[name].__module__ if name in _PRESETS else None
    is_own = not function.__module__.startswith("keras_deepnmt.")
    if owner is not None and not (is_own and owner == function.__module__):
        raise ValueError(
            f'The model name "{name}" is taken by {owner}. Choose another.'
        )
    _PRESETS[name] = function
    return function


def register_variant(model, sizes, paper, variant=None):
    """Registers a function that fills a model's slots as one preset per size.

    The decorated function takes the dict of the preset's arguments, overrides
    included, and returns the arguments of its variant, such as the slots. The
    presets are named `<function>_<size>` and get its docstring. `sizes` maps
    the name of a size to a function `(source_vocabulary_size,
    target_vocabulary_size)` that returns all other arguments. `variant` is the
    variant that the presets belong to; `None` is the function's name. Raises a
    `ValueError` if a name is taken.

    Example:
    >>> sizes = {"tiny": lambda source, target: {"num_heads": 2}}
    >>> model = lambda *vocabulary_sizes, **arguments: arguments
    >>> @register_variant(model, sizes, "Smith (2000)")
    ... def example(arguments):
    ...     return {"encoder_fusion": arguments["num_heads"]}
    >>> get_preset("example_tiny")(11, 13, num_heads=4)
    {'encoder_fusion': 4, 'num_heads': 4}
    >>> del _PRESETS["example_tiny"]
    """

    def register(slots):
        for size, arguments_of in sizes.items():
            preset = _preset(model, slots, arguments_of)
            preset.__name__ = f"{slots.__name__}_{size}"
            preset.__doc__ = slots.__doc__
            preset.__module__ = slots.__module__
            preset.model = model
            preset.variant = variant or slots.__name__
            preset.paper = paper
            register_model(preset)
        return slots

    return register


def _preset(model, slots, arguments_of):
    def arguments(*vocabulary_sizes, **overrides):
        given = dict(overrides)
        known = _argument_names(model)
        options = {
            name: given.pop(name)
            for name in tuple(given)
            if known is not None and name not in known
        }
        if given.get("tie_output_embedding") is False:
            # With one matrix for all embeddings, the output would share it too.
            given.setdefault("share_embeddings", False)
        size_arguments = {**arguments_of(*vocabulary_sizes), **given}
        # A layer that is an override keeps its own options.
        layers = {
            slot: layer
            for slot, layer in slots(size_arguments).items()
            if slot not in size_arguments
        }
        _check_options(options, layers, known, preset.__name__)
        options |= {name: given[name] for name in FOLLOWED if name in given}
        return {**with_slot_options(layers, options), **size_arguments}

    def preset(source_vocabulary_size, target_vocabulary_size, **overrides):
        sizes = (source_vocabulary_size, target_vocabulary_size)
        return model(*sizes, **arguments(*sizes, **overrides))

    preset.arguments = arguments
    return preset


def _argument_names(model):
    """Returns the names of a model's arguments; `None` for any name."""
    if not isinstance(model, type):
        return None
    names = set(inspect.signature(model.__init__).parameters)
    return (names - {"self", "kwargs"}) | {"name", "trainable"}


def _check_options(options, layers, known, preset_name):
    """Raises a `ValueError` for an option that no layer in a slot has."""
    of_layers = slot_options(layers)
    for name in options:
        if name in of_layers:
            continue
        raise ValueError(
            f"`{name}` is not an argument of {preset_name} or of the layers in "
            f"its slots.{did_you_mean(name, sorted(known | of_layers), '`')}"
        )


def list_models(pattern="*"):
    """Lists the names of presets in natural order.

    Args:
        pattern: str with wildcards, as in `"transformer_*"`.

    Returns:
        List of names.

    Example:
    >>> "transformer_tiny" in list_models("transformer_*")
    True
    """
    names = fnmatch.filter(_PRESETS, pattern)
    return sorted(names, key=lambda n: re.sub(r"\d+", _padded_number, n))


def variants():
    """Maps each variant to the names of its presets, smallest size first."""
    presets_of = {}
    for name, preset in _PRESETS.items():
        presets_of.setdefault(preset.variant, []).append(name)
    return presets_of


def get_preset(name):
    """Returns the function registered under a name.

    Raises a `ValueError` that suggests the nearest name if there is none.
    """
    if name in _PRESETS:
        return _PRESETS[name]
    raise ValueError(
        f'Unknown model "{name}".{did_you_mean(name, _PRESETS)} See '
        "keras_deepnmt.list_models()."
    )


def create_model(
    name, source_vocabulary_size, target_vocabulary_size, **overrides
):
    """Builds the model of a preset, with newly initialized weights.

    Args:
        name: str. A name from `list_models()`.
        source_vocabulary_size: int.
        target_vocabulary_size: int.
        **overrides: arguments of the model's class, or of the layers that the
            preset puts into its slots (such as `window=3`), that replace the
            preset's. Layers of the preset that have the model's
            `attention_dropout`, `key_bias`, `layer_norm_epsilon` or
            `activation` get it too; `dropout` reaches their residual
            connections and roles. A layer that is an override keeps its own.
            A layer in a slot may be given by its class name, as in
            `encoder_fusion={"FineGrainedLayerAttention": {"dropout": 0.1}}`.

    Returns:
        A `keras_deepnmt.models.Seq2Seq`.

    Raises:
        ValueError: for an unknown name or argument (the message suggests the
            nearest one), or values that the model rejects.

    Example:
    >>> model = create_model("transformer_tiny", 40, 40, dropout=0.2)
    >>> model.name
    'transformer_tiny'
    """
    preset = get_preset(name)
    overrides.setdefault("name", name)
    model = preset(source_vocabulary_size, target_vocabulary_size, **overrides)
    if hasattr(preset, "arguments"):
        return model
    # Keras accepts any keyword; a misspelt one must not be ignored.
    known = set(model.get_config())
    for key in overrides:
        if key not in known:
            raise ValueError(
                f"`{key}` is not an argument of {name}."
                f"{did_you_mean(key, sorted(known), '`')}"
            )
    return model


def check_preset_version(recorded, file):
    """Refuses a run whose preset may mean another model now.

    `recorded` is the version of the presets that the run recorded, or `None`;
    the message names `file`, which was read.
    """
    if recorded != PRESET_VERSION:
        raise UserError(
            f"{file}: the version of the presets must be {PRESET_VERSION}, "
            f"with which this keras_deepnmt builds models. Received: "
            f"{recorded}. Use the keras_deepnmt of that run, or train again."
        )


def _padded_number(match):
    return match.group().zfill(6)
