"""Names of a package that are loaded when they are first used."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` of a package with lazy names.

    `modules` has for each name the module of the package that defines it; one
    that begins with a dot is a module of `keras_deepnmt`.

    Example:
    >>> get, names = lazy_names("keras_deepnmt.decoding", {"Beams": "beam"})
    >>> "Beams" in names()
    True
    """

    def get(name):
        if name in modules:
            module = importlib.import_module(f".{modules[name]}", package)
            return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names():
        return sorted([*vars(sys.modules[package]), *modules])

    return get, names
