"""Translates text: a model, its two tokenizers and a search."""

from keras_deepnmt.translator.loading import Run as Run
from keras_deepnmt.translator.loading import read_run as read_run
from keras_deepnmt.translator.results import Hypothesis as Hypothesis
from keras_deepnmt.translator.results import TargetScore as TargetScore
from keras_deepnmt.translator.translator import Translator as Translator
from keras_deepnmt.translator.translator import (
    join_translators as join_translators,
)
