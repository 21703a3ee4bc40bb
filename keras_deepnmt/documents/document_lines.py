"""Translates the texts of a document for a server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_deepnmt.documents.segments import Segments
from keras_deepnmt.documents.sentences import SentenceSplitter
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


class LineTranslator:
    """Translates texts that may have markup and several sentences.

    Sentences are split by the rules of their language; without its code or the
    package `sentencex` each text is one sentence. With `warm_up_rows` a server
    calls it before it has clients.
    """

    warm_up_rows: Sequence[str] = ("a",)

    def __call__(
        self,
        translator: "Translator",
        texts: Sequence[str],
        language: str | None = None,
    ) -> list[tuple[str, bool]]:
        """Returns translations, and whether a part of a text was not read."""
        # It holds nothing: all rules are loaded with the package.
        try:
            splitter = None if language is None else SentenceSplitter(language)
        except UserError:
            splitter = None
        segments = Segments(translator, texts, splitter=splitter)
        nbest = translator.translate_nbest(segments.reads, 1)
        translated = segments.finish([found[0] for found in nbest])
        return [
            (one.text, any(h.source_truncated for h in one.hypotheses))
            for one in translated
        ]
