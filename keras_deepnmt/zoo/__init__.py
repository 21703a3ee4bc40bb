"""Presets: every model of the papers' tables, by name."""

from keras_deepnmt.zoo import transformer as transformer
from keras_deepnmt.zoo.registry import create_model as create_model
from keras_deepnmt.zoo.registry import list_models as list_models
