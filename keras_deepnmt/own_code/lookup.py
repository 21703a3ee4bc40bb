"""Finds a class of the user by the name that a recipe gives."""

import importlib
import inspect
from collections.abc import Container
from typing import Any

from keras_deepnmt.own_code.loading import (
    all_modules,
    is_own,
    latest_modules,
)
from keras_deepnmt.suggestions import did_you_mean


def find_own(
    name: str, kinds: type | tuple[type, ...], taken: Container[str] = ()
) -> Any:
    """Finds a class in the files that were imported; `None` if none has it.

    `name` is the class, `Scaled`; with its module, `my_layers.Scaled`; or a
    class of an installed package, such as `package.module.Class`. It must be a
    subclass of `kinds`; with `object` functions are found, too. Raises a
    `ValueError` if it is not, if several files have the name, if the module
    lacks it, or if it is in `taken`, the names that this package has for the
    same purpose.
    """
    place, _, last = name.rpartition(".")
    if place:
        found = [(place, _attribute(place, last, name))]
    else:
        found = _of_name(name, latest_modules())
        # For example, another run that has code of its own was loaded since.
        found = found or _of_name(name, all_modules())
    if not found:
        return None
    if not place and (name in taken or len(found) > 1):
        others = [f"{module}.{name}" for module, _ in found]
        also = " and in keras_deepnmt" if name in taken else ""
        raise ValueError(
            f'"{name}" is in {" and in ".join(m for m, _ in found)}{also}. '
            f"Name yours {' or '.join(others)}, or rename it."
        )
    value = found[0][1]
    if kinds is object and callable(value):
        return value
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not (inspect.isclass(value) and issubclass(value, kinds)):
        wanted = " or ".join(f"{k.__module__}.{k.__name__}" for k in kinds)
        raise ValueError(f'"{name}" must be a subclass of {wanted}.')
    return value


def name_and_options(value: Any) -> tuple[str, dict[str, Any]]:
    """Returns the class and the arguments that a recipe gives.

    Raises a `ValueError` for anything but `Name`, `{Name: {argument: value}}`
    and `{class_name: Name, config: {argument: value}}`.

    Example:
    >>> name_and_options({"Scaled": {"scale": 0.5}})
    ('Scaled', {'scale': 0.5})
    """
    name, options = value, {}
    if isinstance(value, dict):
        if set(value) <= {"class_name", "config"} and "class_name" in value:
            name, options = value["class_name"], value.get("config")
        else:
            pairs = value.items() if len(value) == 1 else [(None, None)]
            ((name, options),) = pairs
        options = {} if options is None else options
    if isinstance(name, str) and isinstance(options, dict):
        return name, options
    raise ValueError(
        "must be a class name or {class name: {argument: value}}. "
        f"Received: {value!r}"
    )


def is_class_name(name: str) -> bool:
    """Whether a name is written like that of a class.

    Example:
    >>> is_class_name("my_file.Triangle"), is_class_name("cosine")
    (True, False)
    """
    return name.rpartition(".")[2][:1].isupper()


def own_names(kinds: type | tuple[type, ...]) -> list[str]:
    """Returns the names of the user's classes of some kinds.

    Example:
    >>> own_names(OSError)
    []
    """
    return sorted(
        name
        for module in latest_modules().values()
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, kinds)
        and is_own(value, module)
    )


def make_own(kind: Any, options: dict[str, Any]) -> Any:
    """Makes an object of a class; its arguments must be those of the class.

    Raises a `ValueError` that names the nearest argument for one that the class
    does not have.

    Example:
    >>> make_own(dict, {"scale": 0.5})
    {'scale': 0.5}
    """
    try:
        parameters = inspect.signature(kind).parameters
    except ValueError:  # of a class that is not written in Python
        return kind(**options)
    takes_any = inspect.Parameter.VAR_KEYWORD in {
        parameter.kind for parameter in parameters.values()
    }
    for name in options if not takes_any else ():
        if name not in parameters:
            raise ValueError(
                f"`{name}` is not an argument of {kind.__name__}."
                f"{did_you_mean(name, parameters, '`')}"
            )
    return kind(**options)


def _of_name(name, modules):
    return [
        (place, vars(module)[name])
        for place, module in modules.items()
        if name in vars(module) and is_own(vars(module)[name], module)
    ]


def _attribute(place, name, whole):
    module = all_modules().get(place)
    if module is None:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise ValueError(
                f'"{whole}": {error}. Name a class in a file of `import` '
                "(--import), or in an installed package."
            ) from error
    if not hasattr(module, name):
        hint = did_you_mean(name, vars(module))
        raise ValueError(f'"{whole}": {place} has no {name}.{hint}')
    return getattr(module, name)
