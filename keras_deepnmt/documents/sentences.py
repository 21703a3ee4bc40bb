"""Splits a text into sentences."""

from collections.abc import Callable

from keras_deepnmt.errors import UserError


class SentenceSplitter:
    """Finds where the sentences of a text begin and end.

    It uses the rules and the abbreviations of `sentencex`, which Wikimedia
    keeps for about 300 languages.

    Args:
        language: Code of the language, such as `de` or `zh-Hant`; the rules of
            a language that `sentencex` does not know are those of English.

    Raises:
        UserError: if the package `sentencex` is not installed, or the code is
            empty.

    Example:
    >>> splitter = SentenceSplitter("de")
    >>> text = "Das ist z.B. ein Hund.  Er schläft."
    >>> [text[begin:end] for begin, end in splitter.spans(text)]
    ['Das ist z.B. ein Hund.', 'Er schläft.']
    """

    def __init__(self, language: str):
        if not language or not language.strip():
            raise UserError(
                "`language` must be the code of a language, such as de. "
                f"Received: language={language!r}"
            )
        self._language = language.strip().replace("_", "-").split("-")[0]
        self._boundaries = _boundaries()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Returns where each sentence begins and ends.

        Args:
            text: One line.

        Returns:
            The first character of each sentence and the one after its last,
            without the white space around it. Only white space stands between
            them.
        """
        spans = []
        for found in self._boundaries(self._language, text):
            begin, end = found["start_index"], found["end_index"]
            sentence = text[begin:end]
            if sentence.strip():
                begin += len(sentence) - len(sentence.lstrip())
                spans.append((begin, begin + len(sentence.strip())))
        return spans


def _boundaries() -> Callable:
    try:
        from sentencex import get_sentence_boundaries
    except ImportError as error:
        raise UserError(
            "Splitting sentences needs the package `sentencex`. Install it "
            "with `pip install keras_deepnmt[sentences]`."
        ) from error
    return get_sentence_boundaries
