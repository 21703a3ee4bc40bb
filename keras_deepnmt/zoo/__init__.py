"""Presets: the models of the papers' tables, by name.

A module of this folder registers the presets of a paper when it is imported.
"""

import importlib
import pkgutil

from keras_deepnmt.zoo.matched_baseline import (
    count_parameters as count_parameters,
)
from keras_deepnmt.zoo.matched_baseline import (
    matched_dimensions as matched_dimensions,
)
from keras_deepnmt.zoo.registry import create_model as create_model
from keras_deepnmt.zoo.registry import list_models as list_models

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
