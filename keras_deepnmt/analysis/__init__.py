"""The papers' analyses of trained models: layers, inputs, embeddings."""

from keras_deepnmt.analysis.alignments.token_alignments import (
    cross_attention_names as cross_attention_names,
)
from keras_deepnmt.analysis.alignments.unknown_words import (
    read_word_table as read_word_table,
)
from keras_deepnmt.analysis.alignments.unknown_words import (
    replace_unknown as replace_unknown,
)
from keras_deepnmt.analysis.alignments.word_alignments import (
    align_words as align_words,
)
from keras_deepnmt.analysis.attention_statistics import (
    align_by_attention as align_by_attention,
)
from keras_deepnmt.analysis.attention_statistics import (
    attention_entropy as attention_entropy,
)
from keras_deepnmt.analysis.branches import branch_names as branch_names
from keras_deepnmt.analysis.branches import gate_shares as gate_shares
from keras_deepnmt.analysis.branches import without_branch as without_branch
from keras_deepnmt.analysis.dense_layers import (
    dense_layer_norms as dense_layer_norms,
)
from keras_deepnmt.analysis.embeddings import channel_spectra as channel_spectra
from keras_deepnmt.analysis.embeddings import (
    embedding_similarity as embedding_similarity,
)
from keras_deepnmt.analysis.embeddings import (
    principal_components as principal_components,
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
from keras_deepnmt.analysis.layer_lens import layer_lens as layer_lens
from keras_deepnmt.analysis.layer_similarity import (
    centered_kernel_alignment as centered_kernel_alignment,
)
from keras_deepnmt.analysis.layer_similarity import (
    layer_diversities as layer_diversities,
)
from keras_deepnmt.analysis.layer_similarity import (
    layer_similarities as layer_similarities,
)
from keras_deepnmt.analysis.recorded_model import record as record
from keras_deepnmt.analysis.recorded_model import (
    recorded_names as recorded_names,
)
from keras_deepnmt.analysis.role_agreement import v_measure as v_measure
from keras_deepnmt.analysis.role_agreement import (
    v_measure_by_chance as v_measure_by_chance,
)
from keras_deepnmt.analysis.roles import RoleUse as RoleUse
from keras_deepnmt.analysis.roles import role_entropy as role_entropy
from keras_deepnmt.analysis.roles import role_uses as role_uses
from keras_deepnmt.analysis.source_ablation import (
    source_ablation as source_ablation,
)
