"""Search and scoring; uses only the methods that every model has.

The parts are loaded when they are first used, so that `SearchOptions` needs
neither Keras nor a backend.
"""

import typing

from keras_deepnmt.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CompiledFunction": ".xla.compiled",
        "SearchOptions": "options",
        "beam_search": "beam",
        "compile_for": ".xla.compiled",
        "greedy_search": "greedy",
        "sample_search": "sampling",
        "score_targets": "scoring",
        "search": "search_by_options",
    },
)
