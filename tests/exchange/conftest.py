"""Small tokenizers, and a model written for CTranslate2, for several files."""

import shutil

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.exchange import export_ctranslate2

DEMO = "transformer_tiny.demo_de_en"


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory):
    """Those of both sides."""
    folder = tmp_path_factory.mktemp("tokenizers")
    texts = {
        side: [getattr(pair, side) for pair in demo_pairs(400)]
        for side in ("source", "target")
    }
    return [
        train_tokenizer(texts[side], folder / f"{side}.model", size)
        for side, size in (("source", 200), ("target", 150))
    ]


@pytest.fixture(scope="session")
def demo():
    """The trained model that comes with the package."""
    return Translator.from_preset(DEMO, compiled=False, length_offset=0.0)


@pytest.fixture(scope="session")
def ctranslate2_demo(demo, tmp_path_factory):
    """Its folder for CTranslate2, which its export has checked."""
    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("ctranslate2") / "demo"
    found = export_ctranslate2(demo, folder)
    assert found["equal"] == found["sentences"]
    assert found["largest_difference"] < 1e-4
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    """Of the `folder` of a file's tests, to be changed."""
    return shutil.copytree(folder, tmp_path / "copy")
