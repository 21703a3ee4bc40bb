"""Translation quality: scores, tests of differences, and BLEU in training."""

from keras_deepnmt.evaluation.alignment_scores import (
    alignment_error_rate as alignment_error_rate,
)
from keras_deepnmt.evaluation.alignment_scores import (
    format_alignment as format_alignment,
)
from keras_deepnmt.evaluation.alignment_scores import (
    parse_alignment as parse_alignment,
)
from keras_deepnmt.evaluation.bleu_callback import BleuCallback as BleuCallback
from keras_deepnmt.evaluation.bleu_definitions import (
    BleuDefinition as BleuDefinition,
)
from keras_deepnmt.evaluation.bleu_definitions import (
    available_definitions as available_definitions,
)
from keras_deepnmt.evaluation.bleu_definitions import (
    bleu_by_definition as bleu_by_definition,
)
from keras_deepnmt.evaluation.comet_scores import CometModel as CometModel
from keras_deepnmt.evaluation.correction_scores import (
    MaxMatchScore as MaxMatchScore,
)
from keras_deepnmt.evaluation.correction_scores import max_match as max_match
from keras_deepnmt.evaluation.errant_scores import ErrantScore as ErrantScore
from keras_deepnmt.evaluation.errant_scores import (
    annotate_corrections as annotate_corrections,
)
from keras_deepnmt.evaluation.errant_scores import errant_score as errant_score
from keras_deepnmt.evaluation.gleu_scores import corpus_gleu as corpus_gleu
from keras_deepnmt.evaluation.gleu_scores import sentence_gleu as sentence_gleu
from keras_deepnmt.evaluation.m2_files import (
    AnnotatedSentence as AnnotatedSentence,
)
from keras_deepnmt.evaluation.m2_files import Edit as Edit
from keras_deepnmt.evaluation.m2_files import read_m2 as read_m2
from keras_deepnmt.evaluation.minimum_bayes_risk import (
    minimum_bayes_risk as minimum_bayes_risk,
)
from keras_deepnmt.evaluation.p_values import format_p_value as format_p_value
from keras_deepnmt.evaluation.precision_recall import EditCounts as EditCounts
from keras_deepnmt.evaluation.precision_recall import f_score as f_score
from keras_deepnmt.evaluation.rouge import rouge_scores as rouge_scores
from keras_deepnmt.evaluation.scores import Score as Score
from keras_deepnmt.evaluation.scores import corpus_scores as corpus_scores
from keras_deepnmt.evaluation.seed_variation import (
    SeedStatistics as SeedStatistics,
)
from keras_deepnmt.evaluation.seed_variation import (
    seed_statistics as seed_statistics,
)
from keras_deepnmt.evaluation.sentence_budget import (
    SentenceBudget as SentenceBudget,
)
from keras_deepnmt.evaluation.sentence_groups import (
    SentenceGroup as SentenceGroup,
)
from keras_deepnmt.evaluation.sentence_groups import (
    bleu_by_rarest_word as bleu_by_rarest_word,
)
from keras_deepnmt.evaluation.sentence_groups import (
    bleu_by_source_length as bleu_by_source_length,
)
from keras_deepnmt.evaluation.sentence_scores import (
    sentence_bleu as sentence_bleu,
)
from keras_deepnmt.evaluation.significance import Comparison as Comparison
from keras_deepnmt.evaluation.significance import SignTest as SignTest
from keras_deepnmt.evaluation.significance import compare_gleu as compare_gleu
from keras_deepnmt.evaluation.significance import (
    compare_sentence_scores as compare_sentence_scores,
)
from keras_deepnmt.evaluation.significance import (
    compare_systems as compare_systems,
)
from keras_deepnmt.evaluation.significance import sign_test as sign_test
from keras_deepnmt.evaluation.word_statistics import copy_rate as copy_rate
from keras_deepnmt.evaluation.word_statistics import (
    length_ratio as length_ratio,
)
from keras_deepnmt.evaluation.word_statistics import (
    repetition_rate as repetition_rate,
)
from keras_deepnmt.evaluation.word_statistics import (
    word_frequencies as word_frequencies,
)
