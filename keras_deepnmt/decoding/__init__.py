"""Search and scoring: speaks to a model only through its contract."""

from keras_deepnmt.decoding.beam_search import beam_search as beam_search
from keras_deepnmt.decoding.compiled import CompiledFunction as CompiledFunction
from keras_deepnmt.decoding.compiled import compile_for as compile_for
from keras_deepnmt.decoding.greedy_search import greedy_search as greedy_search
from keras_deepnmt.decoding.score_targets import score_targets as score_targets
