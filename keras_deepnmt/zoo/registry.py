"""The list of presets: a preset's name is its function's name."""

import difflib
import fnmatch
import re

_PRESETS = {}


def register_model(function):
    """Registers a preset under its function's name.

    Args:
        function: callable `(source_vocabulary_size, target_vocabulary_size,
            **overrides)` that gives a model.

    Returns:
        The function, unchanged.

    Raises:
        ValueError: if the name is taken.

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


def list_models(pattern="*"):
    """Lists presets in natural order.

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


def get_preset(name):
    """Finds a preset's function.

    Args:
        name: str.

    Returns:
        The registered function.

    Raises:
        ValueError: if there is no such preset; names the nearest one.

    Example:
    >>> get_preset("transformer_tiny").__name__
    'transformer_tiny'
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
    """Builds a preset with fresh weights.

    Args:
        name: str. A name from `list_models()`.
        source_vocabulary_size: int.
        target_vocabulary_size: int.
        **overrides: arguments of the model's class that replace the preset's.

    Returns:
        A `keras_deepnmt.models.Seq2Seq`.

    Raises:
        ValueError: for an unknown name or argument (the nearest is named), or
            values that the model refuses.

    Example:
    >>> model = create_model("transformer_tiny", 40, 40, dropout=0.2)
    >>> model.name
    'transformer_tiny'
    """
    preset = get_preset(name)
    overrides.setdefault("name", name)
    model = preset(source_vocabulary_size, target_vocabulary_size, **overrides)
    # Keras lets a model take any keyword; a misspelt one must not be ignored.
    known = model.get_config()
    for key in overrides:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise ValueError(f"`{key}` is unknown to {name}.{hint}")
    return model


def _padded_number(match):
    return match.group().zfill(6)
