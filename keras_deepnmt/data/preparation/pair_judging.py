"""Says of a pair what can be said without the others."""

from collections.abc import Sequence
from typing import NamedTuple

from keras_deepnmt.data.normalization import Normalization
from keras_deepnmt.data.preparation.language_filter import LanguageFilter
from keras_deepnmt.data.preparation.text_filters import (
    PairFilter,
    compared_text,
    hash_text,
)


class JudgedPair(NamedTuple):
    """What can be said of a pair without the others.

    Attributes:
        texts: both sides, as they are given.
        compared: both sides as filters read them, if they are asked for.
        reason: why it is left out, if it is.
        hash: by which repetitions are found; 0 if it is left out.
        fits_languages: whether it has the languages that were asked for.
        before: the context of the source, which a model reads with it.
    """

    texts: tuple[str, str]
    compared: tuple[str, str] | None
    reason: str | None
    hash: int
    fits_languages: bool
    before: str = ""


class PairJudge:
    """Decodes the pairs of a block, and says which of them break a rule.

    `normalizations`, `pair_filter` and `languages` are as in `PairReader`.
    `compared` says whether `JudgedPair.compared` is asked for.
    """

    def __init__(
        self,
        normalizations: tuple[Normalization, Normalization],
        pair_filter: PairFilter | None,
        languages: LanguageFilter | None,
        compared: bool = False,
    ):
        self._normalizations = normalizations
        self._filter = pair_filter
        self._languages = languages
        self._compared = compared

    def __call__(
        self, sides: Sequence[tuple[bytes, bytes, str]], tag: str | None
    ) -> list[JudgedPair | None]:
        """Returns what is known of each pair; `None` if it is not UTF-8.

        `sides` are source and target of each, and the context of the source.
        """
        found: list[JudgedPair | None] = []
        for *pair, before in sides:
            try:
                texts = pair[0].decode("utf-8"), pair[1].decode("utf-8")
            except UnicodeDecodeError:
                found.append(None)
            else:
                found.append(self.judge(texts, tag, before))
        return found

    def judge(
        self, texts: tuple[str, str], tag: str | None, before: str = ""
    ) -> JudgedPair:
        """Returns what is known of a pair of texts.

        Rules are about the texts alone; `before` is the context of the source.
        """
        compared = compared_text(texts[0]), compared_text(texts[1])
        reason = self._reason(texts, compared)
        if reason is not None:
            return JudgedPair(texts, None, reason, 0, True)
        fits = True
        if self._languages is not None:
            (fits,) = self._languages.keeps([compared])
        # With another tag or context a pair is another one: a model reads
        # another source.
        known = hash_text(*compared, *filter(None, (tag, before)))
        kept = compared if self._compared else None
        return JudgedPair(texts, kept, None, known, fits, before)

    def _reason(self, texts, compared):
        for rule, text in zip(self._normalizations, texts, strict=True):
            if rule.is_empty(text):
                return "empty"
        return self._filter and self._filter.reason(*compared)
