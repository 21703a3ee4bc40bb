"""What several tests of other formats do with a model or its files."""

import numpy as np
import pytest

from keras_deepnmt import UserError
from keras_deepnmt.exchange import import_model


def cut(file, size):
    file.write_bytes(file.read_bytes()[:size])


def refused(path, folder, message):
    """The import into the folder is, in one line; nothing is left behind."""
    before = sorted(folder.iterdir())
    with pytest.raises(UserError, match=message) as error:
        import_model(path, folder / "output")
    assert "\n" not in str(error.value)
    assert sorted(folder.iterdir()) == before


def spread_weights(model):
    """So that no two next tokens are as likely, and biases are seen."""
    random = np.random.default_rng(0)
    model.set_weights(
        [
            w + 0.3 * random.normal(size=w.shape).astype("float32")
            for w in model.get_weights()
        ]
    )
