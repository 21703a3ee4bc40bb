"""Corpora, tokenizers, prepared folders, and datasets of padded batches."""

from keras_deepnmt.data.batches.batch_plan import BatchPlan as BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape as BatchShape
from keras_deepnmt.data.batches.batch_shapes import (
    choose_batch_shapes as choose_batch_shapes,
)
from keras_deepnmt.data.batches.batch_source import (
    grain_batches as grain_batches,
)
from keras_deepnmt.data.batches.batch_transforms import (
    BatchTransform as BatchTransform,
)
from keras_deepnmt.data.batches.batch_transforms import (
    WordDropout as WordDropout,
)
from keras_deepnmt.data.batches.datasets import (
    training_dataset as training_dataset,
)
from keras_deepnmt.data.batches.datasets import (
    validation_dataset as validation_dataset,
)
from keras_deepnmt.data.batches.subword_sampling import (
    SubwordSampling as SubwordSampling,
)
from keras_deepnmt.data.context import in_context as in_context
from keras_deepnmt.data.corpora import CorpusOptions as CorpusOptions
from keras_deepnmt.data.known_corpora.finding import (
    list_named_corpora as list_named_corpora,
)
from keras_deepnmt.data.lexical_table import LexicalTable as LexicalTable
from keras_deepnmt.data.lexical_table import (
    learn_lexical_table as learn_lexical_table,
)
from keras_deepnmt.data.pair_store import PairStore as PairStore
from keras_deepnmt.data.preparation.options import (
    PrepareOptions as PrepareOptions,
)
from keras_deepnmt.data.preparation.prepare_corpus import (
    prepare_corpus as prepare_corpus,
)
from keras_deepnmt.data.preparation.shard_writer import (
    ShardWriter as ShardWriter,
)
from keras_deepnmt.data.preparation.tokenizer_training import (
    train_tokenizer as train_tokenizer,
)
from keras_deepnmt.data.prepared_data import PreparedData as PreparedData
from keras_deepnmt.data.shortlists import Shortlists as Shortlists
from keras_deepnmt.data.terms import TermList as TermList
from keras_deepnmt.data.tokenizers import Tokenizer as Tokenizer
