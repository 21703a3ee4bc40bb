"""A translator that has memorized a few sentences, and its export."""

import contextlib
import io
import json
import os
import sys
from unittest import mock

import pytest
from filelock import FileLock
from tiny_translator import make_translator


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder of all processes of a run; whoever comes first fills it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder


@pytest.fixture(scope="session")
def translator(shared_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    weights = shared_folder / "translator.weights.h5"
    options = {"num_beams": 3, "compiled": False}
    with FileLock(shared_folder / "translator.lock"):
        if weights.exists():
            made = make_translator(folder, **options)
            made.model.load_weights(weights)
        else:
            made = make_translator(folder, steps=150, **options)
            made.model.save_weights(weights)
    return made


@pytest.fixture(scope="session")
def version_dir(translator, shared_folder):
    folder = shared_folder / "served" / "tiny"
    with FileLock(shared_folder / "served.lock"):
        if not (folder / "1").exists():
            export(translator, folder)
    return folder / "1"


@pytest.fixture(scope="session")
def loaded(version_dir):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers Sentencepiece*

    return tf.saved_model.load(str(version_dir))


def export(translator, folder):
    from keras_deepnmt.serving import exporting

    with pytest.MonkeyPatch.context() as patch:
        # `test_an_untouched_export_is_verified_by_its_model_folder` does it.
        patch.setattr(exporting, "verify", lambda folder: None)
        exporting.export(translator, folder)


@pytest.fixture
def in_this_process(monkeypatch):
    """Runs the script of the fresh process here, where nothing is imported."""

    from keras_deepnmt.serving import standalone, verification

    def run(action, version_dir):
        with (
            mock.patch.dict(sys.modules),
            mock.patch.dict(os.environ),
            contextlib.redirect_stdout(io.StringIO()) as output,
        ):
            standalone.main(action, str(version_dir))
        return json.loads(output.getvalue())

    monkeypatch.setattr(verification, "_run_standalone", run)
