"""Corpora that are known by name."""

from pathlib import Path

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.pair_reading import CorpusFiles


def corpus_files(corpus: CorpusOptions, split, data_dir=None) -> CorpusFiles:
    """Finds the files of a corpus."""
    return CorpusFiles(
        name=corpus.name or Path(corpus.source).name.split(".")[0],
        source=Path(corpus.source),
        target=Path(corpus.target),
        weight=corpus.weight,
    )
