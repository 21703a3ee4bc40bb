"""The registry of presets. A preset is a function, named like the preset."""

import difflib
import fnmatch
import re

_PRESETS = {}


def register_model(function):
    """Registers a preset under its function's name.

    The function takes `(source_vocabulary_size, target_vocabulary_size,
    **overrides)` and returns a model. It is returned unchanged. Raises a
    `ValueError` if the name is taken.

    Example:
    >>> @register_model
    ... def example_tiny(source_vocabulary_size, target_vocabulary_size):
    ...     return None
    >>> del _PRESETS["example_tiny"]
    """
    name = function.__name__
    if name in _PRESETS:
        raise ValueError(
            f'The model name "{name}" is taken by '
            f"{_PRESETS[name].__module__}. Choose another."
        )
    _PRESETS[name] = function
    return function


def register_variant(model, sizes, paper):
    """Registers a function that fills a model's slots as one preset per size.

    The decorated function takes the dict of the preset's arguments, overrides
    included, and returns the arguments of its variant, such as the slots. The
    presets are named `<function>_<size>` and get its docstring. `sizes` maps
    the name of a size to a function `(source_vocabulary_size,
    target_vocabulary_size)` that returns all other arguments. Raises a
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
            preset.variant = slots.__name__
            preset.paper = paper
            register_model(preset)
        return slots

    return register


def _preset(model, slots, arguments_of):
    def arguments(*vocabulary_sizes, **overrides):
        size_arguments = {**arguments_of(*vocabulary_sizes), **overrides}
        return {**slots(size_arguments), **size_arguments}

    def preset(source_vocabulary_size, target_vocabulary_size, **overrides):
        sizes = (source_vocabulary_size, target_vocabulary_size)
        return model(*sizes, **arguments(*sizes, **overrides))

    preset.arguments = arguments
    return preset


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
    """Maps each variant to the names of its presets, smallest size first.

    Example:
    >>> variants()["transformer"][0]
    'transformer_tiny'
    """
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
    near = difflib.get_close_matches(name, _PRESETS, n=1, cutoff=0.4)
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    raise ValueError(
        f'Unknown model "{name}". {hint}See keras_deepnmt.list_models().'
    )


def create_model(
    name, source_vocabulary_size, target_vocabulary_size, **overrides
):
    """Builds the model of a preset, with newly initialized weights.

    Args:
        name: str. A name from `list_models()`.
        source_vocabulary_size: int.
        target_vocabulary_size: int.
        **overrides: arguments of the model's class that replace the preset's.
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
    # Keras accepts any keyword; a misspelt one must not be ignored.
    known = model.get_config()
    for key in overrides:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise ValueError(f"`{key}` is not an argument of {name}.{hint}")
    return model


def _padded_number(match):
    return match.group().zfill(6)
