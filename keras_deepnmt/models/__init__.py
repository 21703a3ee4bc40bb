"""Models: the contract and the backbones that keep it."""

from keras_deepnmt.models.seq2seq import Seq2Seq as Seq2Seq
from keras_deepnmt.models.transformer import Transformer as Transformer
