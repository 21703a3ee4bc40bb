"""Which texts a SentencePiece model allows as pieces."""

import functools
import unicodedata

import regex
from sentencepiece import sentencepiece_model_pb2 as model_pb2

# Characters that SentencePiece uses itself or never has in a piece.
NEVER_IN_PIECES = "\0\t ▅"
_WORD_MARK = "▁"
_DIGITS = frozenset("0123456789")
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")


class PieceRules:
    """The rules that the trainer of a model kept for its pieces.

    They are those of SentencePiece: a length, one script in a piece, and digits
    alone where the model splits them. A text that has a part that is refused is
    refused too. `model` is the `ModelProto` message.
    """

    def __init__(self, model):
        spec = model.trainer_spec
        self._longest = spec.max_sentencepiece_length
        self._split_scripts = spec.split_by_unicode_script
        self._split_numbers = spec.split_by_number
        self._split_digits = spec.split_digits
        normal = model_pb2.ModelProto.SentencePiece.NORMAL
        self._taken = {p.piece for p in model.pieces if p.type != normal}

    def allow(self, text: str) -> bool:
        """Returns whether a text of several characters may be a piece."""
        return (
            len(text) <= self._longest
            and text not in self._taken
            and not any(letter in NEVER_IN_PIECES for letter in text)
            and not (self._split_digits and not _DIGITS.isdisjoint(text))
            and (not self._split_scripts or self._has_one_script(text))
        )

    def _has_one_script(self, text):
        scripts = {
            script_of_character(letter)
            for letter in text
            if letter != _WORD_MARK
            and (self._split_numbers or letter not in _DIGITS)
        }
        return len(scripts - {None}) < 2


@functools.cache
def script_of_character(letter: str) -> str | None:
    """Names the script of a character, as SentencePiece tells scripts apart.

    Chinese characters and kana are one script; so are signs and digits. A
    combining mark belongs to every script.

    Example:
    >>> [script_of_character(letter) for letter in "aя中の.3"]
    ['LATIN', 'CYRILLIC', 'CJK', 'CJK', 'COMMON', 'COMMON']
    """
    if regex.match(r"\p{Script=Inherited}", letter):
        return None
    if letter == "ー":  # the sound mark of kana
        return "CJK"
    if regex.match(r"\p{Script=Common}", letter):
        return "COMMON"
    name = unicodedata.name(letter, "COMMON").split()[0]
    return "CJK" if name in _EAST_ASIAN else name
