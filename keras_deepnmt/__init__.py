"""A Keras 3 toolkit and model zoo for deep neural machine translation.

Its modules are imported on first use, so that a single layer needs only Keras
and a backend.
"""

import importlib

from keras_deepnmt.version import __version__ as __version__

_MODULES = (
    "analysis",
    "data",
    "decoding",
    "documents",
    "evaluation",
    "exchange",
    "layers",
    "losses",
    "masks",
    "models",
    "recipes",
    "reranking",
    "runs",
    "serving",
    "trained",
    "training",
    "zoo",
)
_NAMES = {
    "Translator": "keras_deepnmt.translator",
    "UserError": "keras_deepnmt.errors",
    "create_model": "keras_deepnmt.zoo",
    "import_code": "keras_deepnmt.own_code",
    "list_models": "keras_deepnmt.zoo",
}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"keras_deepnmt.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'keras_deepnmt' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULES, *_NAMES])
