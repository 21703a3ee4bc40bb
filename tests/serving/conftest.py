"""A translator that has memorized a few sentences, and its export."""

import contextlib
import io
import json
import os
import sys
from unittest import mock

import pytest
from tiny_translator import make_translator


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    return make_translator(folder, steps=150, num_beams=3, compiled=False)


@pytest.fixture(scope="session")
def version_dir(translator, tmp_path_factory):
    from keras_deepnmt.serving import exporting

    folder = tmp_path_factory.mktemp("served") / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        # `test_an_untouched_export_is_verified_by_its_model_folder` does it.
        patch.setattr(exporting, "verify", lambda folder: None)
        return exporting.export(translator, folder)


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
