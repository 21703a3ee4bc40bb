"""Translation quality: scores with signatures, and BLEU during training."""

from keras_deepnmt.evaluation.bleu_callback import BleuCallback as BleuCallback
from keras_deepnmt.evaluation.precision_recall import f_score as f_score
from keras_deepnmt.evaluation.scores import Score as Score
from keras_deepnmt.evaluation.scores import corpus_scores as corpus_scores
from keras_deepnmt.evaluation.sentence_budget import (
    SentenceBudget as SentenceBudget,
)
