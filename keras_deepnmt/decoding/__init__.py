"""Search and scoring; uses only the methods that every model has.

The parts are loaded when they are first used, so that `SearchOptions` needs
neither Keras nor a backend.
"""

import importlib
import typing

# For type checkers and the API reference, which do not run `__getattr__`.
if typing.TYPE_CHECKING:
    from keras_deepnmt.decoding.beam import beam_search as beam_search
    from keras_deepnmt.decoding.greedy import greedy_search as greedy_search
    from keras_deepnmt.decoding.options import SearchOptions as SearchOptions
    from keras_deepnmt.decoding.sampling import sample_search as sample_search
    from keras_deepnmt.decoding.scoring import score_targets as score_targets
    from keras_deepnmt.decoding.search_by_options import search as search
    from keras_deepnmt.xla.compiled import (
        CompiledFunction as CompiledFunction,
    )
    from keras_deepnmt.xla.compiled import compile_for as compile_for

_MODULES = {
    "CompiledFunction": ".xla.compiled",
    "SearchOptions": "options",
    "beam_search": "beam",
    "compile_for": ".xla.compiled",
    "greedy_search": "greedy",
    "sample_search": "sampling",
    "score_targets": "scoring",
    "search": "search_by_options",
}


def __getattr__(name):
    if name in _MODULES:
        module = importlib.import_module(f".{_MODULES[name]}", __name__)
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULES])
