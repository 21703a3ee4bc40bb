"""Corpora, tokenizers, prepared folders, and datasets of padded batches.

The parts are loaded when they are first used, so that a command does not wait
for those that it does not need.
"""

import typing

from keras_deepnmt.lazy_names import lazy_names

# For type checkers and the API reference, which do not run `__getattr__`.
if typing.TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BatchPlan": "batches.batch_plan",
        "BatchShape": "batches.batch_shapes",
        "BatchTransform": "batches.batch_transforms",
        "CorpusOptions": "corpora",
        "LexicalTable": "lexical_table",
        "PairStore": "pair_store",
        "PrepareOptions": "preparation.options",
        "PreparedData": "prepared_data",
        "ShardWriter": "preparation.shard_writer",
        "Shortlists": "shortlists",
        "SubwordSampling": "batches.subword_sampling",
        "TermList": "terms",
        "Tokenizer": "tokenizers",
        "WordDropout": "batches.batch_transforms",
        "choose_batch_shapes": "batches.batch_shapes",
        "grain_batches": "batches.batch_source",
        "in_context": "context",
        "learn_lexical_table": "lexical_table",
        "list_named_corpora": "known_corpora.finding",
        "prepare_corpus": "preparation.prepare_corpus",
        "train_tokenizer": "preparation.tokenizer_training",
        "training_dataset": "batches.datasets",
        "validation_dataset": "batches.datasets",
    },
)
