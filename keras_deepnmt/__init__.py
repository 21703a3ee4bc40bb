"""A Keras 3 toolkit and model zoo for deep neural machine translation.

Rooms are loaded when they are first used, so that a single layer needs Keras
and a backend alone.
"""

import importlib

from keras_deepnmt.version import __version__ as __version__

_ROOMS = (
    "analysis",
    "data",
    "decoding",
    "evaluation",
    "layers",
    "losses",
    "masks",
    "models",
    "recipes",
    "serving",
    "training",
    "zoo",
)
_NAMES = {
    "Translator": "keras_deepnmt.translator",
    "UserError": "keras_deepnmt.errors",
    "create_model": "keras_deepnmt.zoo",
    "list_models": "keras_deepnmt.zoo",
}


def __getattr__(name):
    if name in _ROOMS:
        return importlib.import_module(f"keras_deepnmt.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'keras_deepnmt' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_ROOMS, *_NAMES])
