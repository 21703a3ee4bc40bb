"""Terms: source words with the translation that they are to have beside them.

`<term> Hund <is> dog </term>` in a source asks for `dog`. A model learns it
from marks that training puts at aligned words, and then uses terms that it has
never read. The three marks are user-defined symbols of the source tokenizer, so
that each always is one token.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import regex

from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.data.scripts import LETTER_WITHOUT_SPACES
from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer

TERM_MARKS = ("<term>", "<is>", "</term>")
_TRANSLATION = regex.compile("(?<=<is>).*?(?=</term>)", regex.DOTALL)
# A word; in scripts without spaces a letter; any other visible character.
_UNIT = regex.compile(
    rf"{LETTER_WITHOUT_SPACES}\p{{M}}*"
    rf"|[[\w\p{{M}}]--{LETTER_WITHOUT_SPACES}]+|[^\w\s]",
    regex.V1,
)


def marked_term(source: str, target: str) -> str:
    """Returns a source term with its translation, between marks.

    Example:
    >>> marked_term("Hund", "dog")
    '<term> Hund <is> dog </term>'
    """
    begin, between, end = TERM_MARKS
    return f"{begin} {source} {between} {target} {end}"


def marked_translations(text: str) -> list[str]:
    """Lists the translations that a source has between marks.

    Example:
    >>> marked_translations("Der <term> Hund <is> dog </term> schläft.")
    ['dog']
    """
    return [found.strip() for found in _TRANSLATION.findall(text)]


def check_has_term_marks(tokenizer: "Tokenizer", asked_by: str) -> None:
    """Refuses a source tokenizer that divides the marks of terms.

    `asked_by` is what needs them, for the message.
    """
    missing = set(TERM_MARKS) - set(tokenizer.user_defined_symbols)
    if missing:
        raise UserError(
            f"{asked_by} needs a source tokenizer with the user-defined "
            f"symbols {', '.join(TERM_MARKS)}. Received: {tokenizer.model_file}"
            f", which lacks {', '.join(sorted(missing))}. Train with "
            f"`data.user_defined_symbols: [{', '.join(TERM_MARKS)}]`, or leave "
            "it out."
        )


class TermList:
    r"""A list of terms and their translations, which marks them in sources.

    A term is found where its words stand as they are written in the list, with
    any white space between them. Where several begin, the longest counts. A
    source that has marks already stays as it is.

    Args:
        file: text file, plain or compressed, of lines with a source term, a tab
            and its translation. Of several lines with one term, the first
            counts.

    Raises:
        UserError: if the file is missing or not UTF-8, or a line has another
            form.

    Example:
    >>> size = Path("terms.tsv").write_text("Hund\tdog\n")
    >>> TermList("terms.tsv").mark("Der Hund, ein Hundebaby")
    'Der <term> Hund <is> dog </term>, ein Hundebaby'
    """

    def __init__(self, file: str | Path):
        self._targets: dict[tuple[str, ...], str] = {}
        for number, line in enumerate(LineReader(file), start=1):
            text = decode_line(line, Path(file), number)
            sides = [side.strip() for side in text.split("\t")]
            place = f"{file}, line {number}"
            if len(sides) != 2 or not all(sides):
                raise UserError(
                    f"{place}: must be a source term, a tab and its "
                    f"translation. Received: {text!r}"
                )
            if _has_marks(text):
                raise UserError(
                    f"{place}: must be without the marks "
                    f"{', '.join(TERM_MARKS)}, which are put around it. "
                    f"Received: {text!r}"
                )
            self._targets.setdefault(tuple(_UNIT.findall(sides[0])), sides[1])
        self._longest = max(map(len, self._targets))

    def mark(self, text: str) -> str:
        """Returns a source with marks around its terms.

        Args:
            text: One sentence.
        """
        if _has_marks(text):
            return text
        units = list(_UNIT.finditer(text))
        words = [unit[0] for unit in units]
        marked, place, end = [], 0, 0
        while place < len(words):
            size = self._size_at(words, place)
            if size:
                begin = units[place].start()
                last = units[place + size - 1].end()
                target = self._targets[tuple(words[place : place + size])]
                marked += [
                    text[end:begin],
                    marked_term(text[begin:last], target),
                ]
                end = last
            place += size or 1
        return "".join([*marked, text[end:]])

    def _size_at(self, words, place):
        """The number of words of the longest term that begins at a place."""
        longest = min(self._longest, len(words) - place)
        for size in range(longest, 0, -1):
            if tuple(words[place : place + size]) in self._targets:
                return size
        return 0


def _has_marks(text):
    return any(mark in text for mark in TERM_MARKS)
