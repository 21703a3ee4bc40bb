"""A process that has not run any code of the user, for tests in one process."""

import contextlib
import sys

import keras
import pytest

from keras_deepnmt.own_code import consent, loading

LAYER = """\
from keras_deepnmt.layers import MultiHeadAttention


class ScaledSelfAttention(MultiHeadAttention):
    slots = ("encoder_self_attention",)

    def __init__(self, num_heads, scale=1.0, **kwargs):
        super().__init__(num_heads, **kwargs)
        self.scale = scale

    def call(self, query, *args, **kwargs):
        return super().call(query, *args, **kwargs) * self.scale

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}
"""


@contextlib.contextmanager
def new_process(home, folder=None):
    """What this process ran is unknown within; `home` is that of the user.

    With `folder` it is the current folder.
    """
    objects, outer = keras.saving.get_custom_objects(), dict(loading._loaded)
    before = dict(objects)
    for name in [n for n, v in before.items() if v.__module__ in outer]:
        del objects[name]
    for name in outer:
        del sys.modules[name]
    registries = [(names, dict(names)) for names in loading._registries]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home))
        for name in ("_given", "_loaded", "_helpers"):
            patch.setattr(loading, name, {})
        patch.setattr(loading, "_latest", [])
        patch.setattr(loading, "_run_paths", set())
        patch.setattr(loading, "_warned", set())
        patch.setattr(consent, "_in_this_process", set())
        if folder is not None:
            patch.chdir(folder)
        try:
            yield
        finally:
            for name in loading._loaded:
                del sys.modules[name]
            for names, known in [*registries, (objects, before)]:
                names.clear()
                names.update(known)
            for name, (_, module) in outer.items():
                sys.modules[name] = module
