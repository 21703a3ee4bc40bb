"""Whether a command compiles the model, and keeps what was compiled."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.threads import use_cores
from keras_deepnmt.xla.cache import (
    ask_for_user_cache,
    open_user_cache,
)

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator
from keras_deepnmt.xla import tuned


def add_compile(parser: VerbParser, lazily: bool = True) -> None:
    """Adds `--compile` and `--no-compile`.

    The default is that of `LazilyCompiled`, or always to compile.
    """
    default = (
        f"after the first {tuned.FEW_TOKENS} tokens of the input, which plain "
        "graphs process before a compilation would be done."
        if lazily
        else "it does."
    )
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="Whether XLA compiles the model for each length of sentences. "
        "That takes seconds and is kept for the next command; later sentences "
        f"are then computed faster. Default: {default}",
    )


def start_backend(cores: int | None = None, keep_memory: bool = True) -> None:
    """Imports the backend, with the user's cache of compilations.

    `cores` are those that this process uses, if it shares a machine, and
    `keep_memory` is that of `import_backend`.
    """
    # TensorFlow reads its flags when it first looks for devices.
    ask_for_user_cache()
    import_backend(keep_memory)
    import keras

    if cores is not None:
        use_cores(cores)
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            tf.config.threading.set_intra_op_parallelism_threads(cores)
            tf.config.threading.set_inter_op_parallelism_threads(cores)
    open_user_cache(keras.config.backend())


class LazilyCompiled:
    """Gives a translator that is compiled only when the input is long.

    For the first texts it compiles as few shapes as possible. Most inputs end
    with them. The argument `compiled` is `True` to always use the compiled
    translator, `False` for never, and `None` to use plain graphs for the first
    `tuned.FEW_TOKENS` tokens, except on JAX, which has none. The attribute
    `compiled` is the compiled translator.
    """

    def __init__(self, translator: "Translator", compiled: bool | None):
        import keras

        if compiled is None and keras.config.backend() != "tensorflow":
            compiled = True  # JAX would run each operation by itself
        self.compiled = translator
        self._is_compiled = compiled
        self._plain = None if compiled else translator.replaced(compiled=False)
        self._num_tokens = 0
        self._was_chosen = False
        self._later_padding = translator.compilation_padding
        translator.compilation_padding = (
            tuned.COMPILATION_PADDING_OF_FIRST_TEXTS
        )

    def choose(self, sources: Sequence[str]) -> "Translator":
        """Returns the translator for the next texts of the input."""
        if self._was_chosen:
            self.compiled.compilation_padding = self._later_padding
        if self._is_compiled is None:
            ids = self.compiled.source_tokenizer.encode(list(sources))
            self._num_tokens += sum(map(len, ids))
            self._is_compiled = self._num_tokens > tuned.FEW_TOKENS or None
        self._was_chosen = bool(self._is_compiled)
        return self.compiled if self._is_compiled else self._plain

    @property
    def _translators(self):
        return [self.compiled, *filter(None, [self._plain])]

    @property
    def state(self) -> dict[str, Any]:
        """What the choice for later texts depends on, in terms of JSON."""
        return {
            "is_compiled": self._is_compiled,
            "num_tokens": self._num_tokens,
            "was_chosen": self._was_chosen,
            "searches": [each.search_state for each in self._translators],
        }

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        # The state may be that of another backend, which has a plain translator
        # where this one has none, or the other way round.
        if self._plain is not None:
            self._is_compiled = state["is_compiled"]
        self._num_tokens = state["num_tokens"]
        self._was_chosen = state["was_chosen"]
        for translator, searches in zip(
            self._translators, state["searches"], strict=False
        ):
            translator.search_state = searches
