"""Small tokenizers of both sides."""

import pytest

from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    texts = {
        side: [getattr(pair, side) for pair in demo_pairs(400)]
        for side in ("source", "target")
    }
    return [
        train_tokenizer(texts[side], folder / f"{side}.model", size)
        for side, size in (("source", 200), ("target", 150))
    ]
