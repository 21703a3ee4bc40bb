"""Translates for a server with a run, or a model of the package."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.masks import PADDING_ID
from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.server.warm_up_shapes import warm_up_shapes
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla import tuned


class TranslatorEngine(Engine):
    """Translates with a run, a preset folder or a model of the package.

    Args:
        translator: the translator, which nothing else may use.
        max_tokens: the number of tokens of the longest sentence.
    """

    def __init__(self, translator: Translator, max_tokens: int):
        self._translator = translator
        # The limits of a request refuse what would be truncated.
        translator.on_truncated = lambda numbers: None
        self._max_tokens = min(max_tokens, translator.max_source_length)
        self.most_hypotheses = translator.num_beams
        # A translator computes two batches at a time where it has two cores.
        self.batch_size = 2 * translator.batch_size
        self._state = None

    def warm_up(self) -> None:
        translator = self._translator
        if translator.compiled:
            for shape in warm_up_shapes(
                translator.batch_size, self._max_tokens, tuned.MOST_PROGRAMS
            ):
                translator.search(np.full(shape, PADDING_ID, "int32"))
        # A sentence that no program has room for needs the plain graph, as
        # translations of unusual length do.
        text = self._longer_than_all()
        translator.translate_nbest([text], 1)
        state = translator.search_state
        # Many sentences would have other programs compiled while clients wait.
        self._state = {**state, "num_sentences": []}
        translator.translate_nbest([text[:9]] * 3, self.most_hypotheses)

    def _longer_than_all(self):
        tokenizer = self._translator.source_tokenizer
        piece = tokenizer.decode([[tokenizer.vocabulary_size - 1]])[0] or "a"
        return " ".join([piece] * (tuned.MUCH_LARGER_SHAPE * self._max_tokens))

    def lengths(self, texts: Sequence[str]) -> list[int]:
        translator = self._translator
        ids = translator.source_tokenizer.encode(translator.tagged(texts))
        return [len(row) + 1 for row in ids]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        translator = self._translator
        if self._state is not None:
            translator.search_state = self._state
        nbest = translator.translate_nbest(list(texts), number)
        return [list(map(Translation.of, found)) for found in nbest]
