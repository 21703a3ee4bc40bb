"""Analyses of trained models: the values that papers report, and figures."""

from keras_deepnmt.analysis.analyses import ANALYSES as ANALYSES
from keras_deepnmt.analysis.analyses import Analysis as Analysis
from keras_deepnmt.analysis.analyses import analyze as analyze
from keras_deepnmt.analysis.analyzed_run import AnalyzedRun as AnalyzedRun
from keras_deepnmt.analysis.attention import (
    align_by_attention as align_by_attention,
)
from keras_deepnmt.analysis.attention import (
    attention_entropy as attention_entropy,
)
from keras_deepnmt.analysis.attention import (
    cross_attention_names as cross_attention_names,
)
from keras_deepnmt.analysis.comparisons import score_figures as score_figures
from keras_deepnmt.analysis.comparisons import (
    training_figures as training_figures,
)
from keras_deepnmt.analysis.dense_nmt import (
    dense_layer_norms as dense_layer_norms,
)
from keras_deepnmt.analysis.drawing import draw as draw
from keras_deepnmt.analysis.drawing import save_figures as save_figures
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
from keras_deepnmt.analysis.figure import Bars as Bars
from keras_deepnmt.analysis.figure import Figure as Figure
from keras_deepnmt.analysis.figure import HeatMap as HeatMap
from keras_deepnmt.analysis.figure import Lines as Lines
from keras_deepnmt.analysis.figure import Points as Points
from keras_deepnmt.analysis.figure import Table as Table
from keras_deepnmt.analysis.hybrid_self_attention import (
    branch_names as branch_names,
)
from keras_deepnmt.analysis.hybrid_self_attention import (
    gate_shares as gate_shares,
)
from keras_deepnmt.analysis.hybrid_self_attention import (
    without_branch as without_branch,
)
from keras_deepnmt.analysis.layer_aggregation import (
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
from keras_deepnmt.analysis.report import report as report
from keras_deepnmt.analysis.role_agreement import v_measure as v_measure
from keras_deepnmt.analysis.role_agreement import (
    v_measure_by_chance as v_measure_by_chance,
)
from keras_deepnmt.analysis.role_interaction import RoleUse as RoleUse
from keras_deepnmt.analysis.role_interaction import (
    role_entropy as role_entropy,
)
from keras_deepnmt.analysis.role_interaction import role_uses as role_uses
from keras_deepnmt.analysis.source_ablation import (
    source_ablation as source_ablation,
)
from keras_deepnmt.analysis.unknown_words import (
    read_word_table as read_word_table,
)
from keras_deepnmt.analysis.unknown_words import (
    replace_unknown as replace_unknown,
)
from keras_deepnmt.analysis.word_alignments import align_words as align_words
