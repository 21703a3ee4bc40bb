"""The papers' analyses of trained models: layers, inputs, embeddings."""

from keras_deepnmt.analysis.embeddings import (
    embedding_similarity as embedding_similarity,
)
from keras_deepnmt.analysis.embeddings import (
    singular_value_curve as singular_value_curve,
)
from keras_deepnmt.analysis.input_exploitation import (
    input_exploitation as input_exploitation,
)
from keras_deepnmt.analysis.layer_attention import (
    layer_attention_heat_map as layer_attention_heat_map,
)
from keras_deepnmt.analysis.layer_attention import (
    mask_encoder_layer as mask_encoder_layer,
)
