"""Presets: every model of the papers' tables, by name."""

from keras_deepnmt.zoo import transformer as transformer
from keras_deepnmt.zoo.matched_baseline import (
    count_parameters as count_parameters,
)
from keras_deepnmt.zoo.matched_baseline import (
    matched_dimensions as matched_dimensions,
)
from keras_deepnmt.zoo.registry import create_model as create_model
from keras_deepnmt.zoo.registry import list_models as list_models
