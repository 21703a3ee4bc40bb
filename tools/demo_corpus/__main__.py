"""Writes the compressed demo corpus of the package."""

import lzma

from keras_deepnmt.data.demo import CORPUS_FILE, NUM_PAIRS
from keras_deepnmt.files import atomic_file
from tools.demo_corpus.corpus_text import corpus_text

with atomic_file(CORPUS_FILE) as temporary:
    temporary.write_bytes(
        lzma.compress(
            corpus_text(NUM_PAIRS).encode(), preset=9 | lzma.PRESET_EXTREME
        )
    )
