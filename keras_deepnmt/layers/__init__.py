"""Layers that can be used alone in any functional Keras model."""

from keras_deepnmt.layers.dropout import Dropout as Dropout
from keras_deepnmt.layers.feed_forward import FeedForward as FeedForward
from keras_deepnmt.layers.fine_grained_layer_attention import (
    FineGrainedLayerAttention as FineGrainedLayerAttention,
)
from keras_deepnmt.layers.multi_head_attention import (
    MultiHeadAttention as MultiHeadAttention,
)
from keras_deepnmt.layers.residual_connection import (
    ResidualConnection as ResidualConnection,
)
from keras_deepnmt.layers.sinusoidal_position_encoding import (
    SinusoidalPositionEncoding as SinusoidalPositionEncoding,
)
from keras_deepnmt.layers.surface_fusion import SurfaceFusion as SurfaceFusion
from keras_deepnmt.layers.transformer_decoder_block import (
    TransformerDecoderBlock as TransformerDecoderBlock,
)
from keras_deepnmt.layers.transformer_encoder_block import (
    TransformerEncoderBlock as TransformerEncoderBlock,
)
