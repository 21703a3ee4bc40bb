"""The corpora known by name."""

from keras_deepnmt.data.known_corpora.corrections_and_summaries import (
    MONOLINGUAL_CORPORA,
)
from keras_deepnmt.data.known_corpora.papers import PAPER_CORPORA
from keras_deepnmt.data.known_corpora.small_corpora import SMALL_CORPORA
from keras_deepnmt.data.known_corpora.sources import NamedCorpus

NAMED_CORPORA: dict[str, NamedCorpus] = {
    corpus.name: corpus
    for corpus in (*SMALL_CORPORA, *PAPER_CORPORA, *MONOLINGUAL_CORPORA)
}
