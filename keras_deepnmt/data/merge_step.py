"""The step of a tokenizer that cuts words by codes of subword-nmt."""

import functools
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from keras_deepnmt.data.merge_codes import MergeCodes, MergeOptions, Token
from keras_deepnmt.data.text_steps import TextStep

if TYPE_CHECKING:
    import tensorflow as tf

    from keras_deepnmt.data.merge_step_in_graph import MergesInGraph


class MergeStep(TextStep):
    """Cuts words by codes of subword-nmt, and puts spaces between the pieces.

    The pieces are words of the SentencePiece model then, which is of the type
    `word`. Afterwards each separator with a space is removed, and a separator
    at the end.

    Args:
        user_defined_symbols: Not used.
        **options: Those of `MergeOptions`.

    Example:
    >>> step = MergeStep(codes=["i n</w>", "H u"], version="0.2")
    >>> step.before("ein  Hund")
    'e@@ in Hu@@ n@@ d'
    >>> step.after("e@@ in Hu@@ n@@ d")
    'ein Hund'
    """

    name = "subword_nmt"
    form = MergeOptions

    def __init__(self, user_defined_symbols: Sequence[str] = (), **options):
        self.options = MergeOptions(**options)
        self.separator = self.options.separator
        self._codes = MergeCodes(self.options)

    def __reduce__(self):
        # Without the words that were cut, and without constants of a graph.
        maker = functools.partial(MergeStep, **self.options.model_dump())
        return maker, ()

    def before(self, text: str) -> str:
        return " ".join([token for token, *_ in self._tokens(text)])

    def places(self, text: str) -> list[int]:
        places = []
        for token, begin, end in self._tokens(text):
            places += [min(begin + n, end) for n in range(len(token))]
            places.append(end)  # of the space after it
        return places or [len(text)]

    def after(self, text: str) -> str:
        text = text.lstrip(" ").replace(f"{self.separator} ", "")
        return text.removesuffix(self.separator)

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        return self._in_graph.cut(texts)

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        import tensorflow as tf

        separator = re.escape(self.separator)
        for pattern in (r"\A +", f"{separator}[ ]", rf"{separator}\z"):
            texts = tf.strings.regex_replace(texts, pattern, "")
        return texts

    @cached_property
    def _in_graph(self) -> "MergesInGraph":
        from keras_deepnmt.data.merge_step_in_graph import MergesInGraph

        return MergesInGraph(self._codes)

    def _tokens(self, text: str) -> list[Token]:
        stripped = self.options.stripped
        start = len(text) - len(text.lstrip(stripped))
        found = []
        for word in text.strip(stripped).split(" "):
            if word:
                found += [
                    (token, start + begin, start + end)
                    for token, begin, end in self._codes.cut(word)
                ]
            start += len(word) + 1
        return found
