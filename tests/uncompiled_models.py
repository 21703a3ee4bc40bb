"""Avoids graphs in tests that need none: each new model would trace them."""

import contextlib

import pytest

from keras_deepnmt.models.seq2seq import Seq2Seq


@contextlib.contextmanager
def eager_updates():
    """Updates models without XLA operation by operation, without a graph.

    For tests of a few updates whose subject is not the update: tracing it takes
    longer than making it.
    """
    compile_model = Seq2Seq.compile

    def compile_eagerly(model, *arguments, **options):
        eager = not options.get("jit_compile", True)
        return compile_model(
            model, *arguments, **{"run_eagerly": eager, **options}
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Seq2Seq, "compile", compile_eagerly)
        yield
