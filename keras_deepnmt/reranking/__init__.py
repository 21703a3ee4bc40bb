"""Sorts translations by the scores of several models, and tunes the weights."""

from keras_deepnmt.reranking.reranker import Reranker as Reranker
from keras_deepnmt.reranking.weight_tuning import TunedWeights as TunedWeights
from keras_deepnmt.reranking.weight_tuning import tune_weights as tune_weights
