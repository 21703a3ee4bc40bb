"""A translator that knows its few sentences by heart, and its export."""

import pytest
from tiny_translator import make_translator


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    return make_translator(folder, steps=150, num_beams=3, compiled=False)


@pytest.fixture(scope="session")
def version_dir(translator, tmp_path_factory):
    from keras_deepnmt.serving.exporting import export

    return export(translator, tmp_path_factory.mktemp("served") / "tiny")
