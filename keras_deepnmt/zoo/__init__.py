"""Presets: the models of the papers' tables, by name."""

from keras_deepnmt.zoo import conv_seq2seq as conv_seq2seq
from keras_deepnmt.zoo import everything as everything
from keras_deepnmt.zoo import hybrid_self_attention as hybrid_self_attention
from keras_deepnmt.zoo import layer_aggregation as layer_aggregation
from keras_deepnmt.zoo import layer_fusion as layer_fusion
from keras_deepnmt.zoo import matched as matched
from keras_deepnmt.zoo import role_interaction as role_interaction
from keras_deepnmt.zoo import transformer as transformer
from keras_deepnmt.zoo.matched_baseline import (
    count_parameters as count_parameters,
)
from keras_deepnmt.zoo.matched_baseline import (
    matched_dimensions as matched_dimensions,
)
from keras_deepnmt.zoo.registry import create_model as create_model
from keras_deepnmt.zoo.registry import list_models as list_models
