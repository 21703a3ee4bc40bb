"""From text files to batches: corpora, tokenizers, shards, shapes, datasets."""

from keras_deepnmt.data.batch_source import grain_batches as grain_batches
from keras_deepnmt.data.batch_transforms import BatchTransform as BatchTransform
from keras_deepnmt.data.batch_transforms import WordDropout as WordDropout
from keras_deepnmt.data.batching import BatchPlan as BatchPlan
from keras_deepnmt.data.cells import Cell as Cell
from keras_deepnmt.data.cells import choose_cells as choose_cells
from keras_deepnmt.data.corpora import CorpusOptions as CorpusOptions
from keras_deepnmt.data.named_corpora import (
    list_named_corpora as list_named_corpora,
)
from keras_deepnmt.data.pipeline import training_dataset as training_dataset
from keras_deepnmt.data.pipeline import (
    validation_dataset as validation_dataset,
)
from keras_deepnmt.data.prepare import prepare_corpus as prepare_corpus
from keras_deepnmt.data.prepare_options import PrepareOptions as PrepareOptions
from keras_deepnmt.data.prepared_data import PreparedData as PreparedData
from keras_deepnmt.data.shards import PairStore as PairStore
from keras_deepnmt.data.shards import ShardWriter as ShardWriter
from keras_deepnmt.data.subword_sampling import (
    SubwordSampling as SubwordSampling,
)
from keras_deepnmt.data.tokenizer_training import (
    train_tokenizer as train_tokenizer,
)
from keras_deepnmt.data.tokenizers import Tokenizer as Tokenizer
