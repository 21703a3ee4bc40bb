"""Translates text: a model, its two tokenizers and a search.

The parts are loaded when they are first used, so that what they have in common
with clients and other engines needs neither Keras nor a backend.
"""

import typing

from keras_deepnmt.lazy_names import lazy_names

# For type checkers and the API reference, which do not run `__getattr__`.
if typing.TYPE_CHECKING:
    from keras_deepnmt.translator.loading import Run as Run
    from keras_deepnmt.translator.loading import read_run as read_run
    from keras_deepnmt.translator.results import Hypothesis as Hypothesis
    from keras_deepnmt.translator.results import TargetScore as TargetScore
    from keras_deepnmt.translator.translator import Translator as Translator
    from keras_deepnmt.translator.translator import (
        join_translators as join_translators,
    )

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Hypothesis": "results",
        "Run": "loading",
        "TargetScore": "results",
        "Translator": "translator",
        "join_translators": "translator",
        "read_run": "loading",
    },
)
