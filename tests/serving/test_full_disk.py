"""A disk that is full while a model is exported: one message, nothing left."""

import errno
import os

import pytest
import tensorflow as tf
from tiny_translator import make_translator

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving import export


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    return make_translator(tmp_path_factory.mktemp("full"), compiled=False)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_told_and_leaves_nothing(
    untrained, tmp_path, monkeypatch, number
):
    def fail(module, folder, **_):
        with open(os.path.join(folder, "saved_model.pb"), "wb") as file:
            file.write(b"half")
        message = f"{folder}/variables: {os.strerror(number)}"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setattr("tensorflow.saved_model.save", fail)
    with pytest.raises(UserError, match=f"{os.strerror(number)}.*Free some"):
        export(untrained, tmp_path / "served" / "demo")
    assert list(tmp_path.iterdir()) == []


def test_another_error_leaves_older_versions(untrained, tmp_path, monkeypatch):
    def fail(module, folder, **_):
        raise tf.errors.InternalError(None, None, "unknown")

    (tmp_path / "demo" / "1").mkdir(parents=True)
    monkeypatch.setattr("tensorflow.saved_model.save", fail)
    with pytest.raises(tf.errors.InternalError):
        export(untrained, tmp_path / "demo")
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["1"]
