"""Layers that can be used alone in any functional Keras model.

Letters in shapes: B sentences, K beams, S source length, T target length,
L layers, D width of the states (`hidden_dim`), F width of a feed-forward
network (`intermediate_dim`), N attention heads, H width of a head, V
vocabulary, M positions of a cache. In incremental decoding, a layer with a
cache is called with one position of each beam, `(B*K, 1, D)`.
"""

from keras_deepnmt.layers.aggregation_node import (
    AggregationNode as AggregationNode,
)
from keras_deepnmt.layers.attention_linear_biases import (
    AttentionLinearBiases as AttentionLinearBiases,
)
from keras_deepnmt.layers.average_attention import (
    AverageAttention as AverageAttention,
)
from keras_deepnmt.layers.contextualized_embedding import (
    ContextualizedEmbedding as ContextualizedEmbedding,
)
from keras_deepnmt.layers.conv_decoder_block import (
    ConvDecoderBlock as ConvDecoderBlock,
)
from keras_deepnmt.layers.conv_encoder_block import (
    ConvEncoderBlock as ConvEncoderBlock,
)
from keras_deepnmt.layers.deep_norm import DeepNorm as DeepNorm
from keras_deepnmt.layers.dense_attention import (
    DenseAttention as DenseAttention,
)
from keras_deepnmt.layers.dense_attention_memory import (
    DenseAttentionMemory as DenseAttentionMemory,
)
from keras_deepnmt.layers.depth_scaled_initializer import (
    DepthScaledInitializer as DepthScaledInitializer,
)
from keras_deepnmt.layers.dropout import Dropout as Dropout
from keras_deepnmt.layers.feed_forward import FeedForward as FeedForward
from keras_deepnmt.layers.fine_grained_layer_attention import (
    FineGrainedLayerAttention as FineGrainedLayerAttention,
)
from keras_deepnmt.layers.gated_convolution import (
    GatedConvolution as GatedConvolution,
)
from keras_deepnmt.layers.gradient_scale import GradientScale as GradientScale
from keras_deepnmt.layers.hybrid_self_attention import (
    HybridSelfAttention as HybridSelfAttention,
)
from keras_deepnmt.layers.layer_aggregation import (
    LayerAggregation as LayerAggregation,
)
from keras_deepnmt.layers.layer_diversity import (
    LayerDiversity as LayerDiversity,
)
from keras_deepnmt.layers.layer_drop import LayerDrop as LayerDrop
from keras_deepnmt.layers.learned_position_embedding import (
    LearnedPositionEmbedding as LearnedPositionEmbedding,
)
from keras_deepnmt.layers.multi_head_attention import (
    MultiHeadAttention as MultiHeadAttention,
)
from keras_deepnmt.layers.multi_layer_attention import (
    MultiLayerAttention as MultiLayerAttention,
)
from keras_deepnmt.layers.multi_step_attention import (
    MultiStepAttention as MultiStepAttention,
)
from keras_deepnmt.layers.relative_position_bias import (
    RelativePositionBias as RelativePositionBias,
)
from keras_deepnmt.layers.relative_position_representations import (
    RelativePositionRepresentations as RelativePositionRepresentations,
)
from keras_deepnmt.layers.residual_connection import (
    ResidualConnection as ResidualConnection,
)
from keras_deepnmt.layers.role_assignment import (
    RoleAssignment as RoleAssignment,
)
from keras_deepnmt.layers.role_encoder import RoleEncoder as RoleEncoder
from keras_deepnmt.layers.role_interaction import (
    RoleInteraction as RoleInteraction,
)
from keras_deepnmt.layers.rotary_position_embedding import (
    RotaryPositionEmbedding as RotaryPositionEmbedding,
)
from keras_deepnmt.layers.simpler_simple_recurrent_unit import (
    SimplerSimpleRecurrentUnit as SimplerSimpleRecurrentUnit,
)
from keras_deepnmt.layers.sinusoidal_position_encoding import (
    SinusoidalPositionEncoding as SinusoidalPositionEncoding,
)
from keras_deepnmt.layers.summary_layer import SummaryLayer as SummaryLayer
from keras_deepnmt.layers.surface_fusion import SurfaceFusion as SurfaceFusion
from keras_deepnmt.layers.transformer_decoder_block import (
    TransformerDecoderBlock as TransformerDecoderBlock,
)
from keras_deepnmt.layers.transformer_encoder_block import (
    TransformerEncoderBlock as TransformerEncoderBlock,
)
from keras_deepnmt.layers.weight_normalized_conv1d import (
    WeightNormalizedConv1D as WeightNormalizedConv1D,
)
from keras_deepnmt.layers.weight_normalized_dense import (
    WeightNormalizedDense as WeightNormalizedDense,
)
